import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import type { CallableTool, ToolSource } from '../../../runtime/tools.ts';
import { ToolCatalog } from './service.ts';

const user = { tenant: 'alpha' };

function tool(name: string, more: Partial<CallableTool> = {}): CallableTool {
  return {
    name,
    description: '',
    inputSchema: { type: 'object' },
    transport: 'native',
    safetyTier: 'read',
    egress: 'none',
    replayPolicy: 'idempotent',
    call: async () => undefined,
    ...more,
  };
}

function source(scope: string, tools: readonly CallableTool[], more: Partial<ToolSource> = {}): ToolSource {
  return {
    scope,
    kind: 'host-extension',
    find: async (_user, name) => tools.find((each) => each.name === name),
    list: async () => tools,
    ...more,
  };
}

function catalogue(...tools: ToolSource[]) {
  const clock = new ManualClock();
  const catalog = new ToolCatalog({ tools, clock });
  return { clock, list: catalog.list.bind(catalog), find: catalog.find.bind(catalog) };
}

describe('the catalogue of tools', () => {
  it('has what all sources have, by id, each id once', async () => {
    const [first, second] = [tool('b:x', { title: 'One' }), tool('b:x', { title: 'Two' })];
    const { list } = catalogue(source('b', [first, second]), source('a', [tool('a:y', { description: 'Does it.' })]));
    const facts = {
      source: 'host-extension',
      inputSchema: { type: 'object' },
      safetyTier: 'read',
      egress: 'none',
      replayPolicy: 'idempotent',
    };
    expect(await list(user)).toEqual([
      { toolId: 'a:y', description: 'Does it.', ...facts },
      { toolId: 'b:x', title: 'One', ...facts },
    ]);
  });

  it('does not ask sources that nobody wants to hear of', async () => {
    const list = () => Promise.reject(new Error('was asked'));
    const { list: listed } = catalogue(source('a', [tool('a:y')]), source('mcp', [], { kind: 'mcp', list }));
    expect((await listed(user, 'host-extension')).map(({ toolId }) => toolId)).toEqual(['a:y']);
    expect(await listed(user, 'connector')).toEqual([]);
  });

  it('finds a tool where its name says, as the one who asks', async () => {
    const asked: unknown[] = [];
    const find = async (...question: unknown[]) => void asked.push(...question);
    const { find: found } = catalogue(source('a', [tool('a:y')]), source('b', [], { find }));
    expect(await found(user, 'a:y')).toMatchObject({ toolId: 'a:y', source: 'host-extension' });
    expect(await found(user, 'a:z')).toBeUndefined();
    expect(await found(user, 'c:y')).toBeUndefined();
    expect(await found(user, 'y')).toBeUndefined();
    expect(await found(user, 'b:y')).toBeUndefined();
    expect(asked).toEqual([user, 'b:y', undefined]);
  });

  it('does not have what may or may not be there', async () => {
    const { find } = catalogue(source('a', [tool('a:y', { isUnavailable: true })]));
    expect(await find(user, 'a:y')).toBeUndefined();
  });

  it('does not wait for long', async () => {
    const { clock, find } = catalogue(source('a', [], { find: () => new Promise(() => {}) }));
    const found = find(user, 'a:y');
    clock.advance(5_000);
    expect(await found).toBeUndefined();
  });
});
