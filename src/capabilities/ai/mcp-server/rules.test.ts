import { describe, expect, it } from 'vitest';
import { connection, line, node, workflow } from '../../../../test/support/definitions.ts';
import type { RunSnapshot } from '../../../protocol/running/runs.ts';
import { isOwnOrigin, resultOf, toolOf } from './rules.ts';

describe('a workflow as a tool', () => {
  it('tells nobody the default of what is sensitive', () => {
    const { inputSchema } = toolOf(
      workflow([node('a')], [], {
        variables: [
          { name: 'region', type: 'string', required: true, defaultValue: 'north' },
          { name: 'account', type: 'string', sensitive: true, defaultValue: 'DE-17' },
        ],
      }),
    );
    expect(inputSchema).toEqual({
      type: 'object',
      properties: { region: { type: 'string', default: 'north' }, account: { type: 'string' } },
      additionalProperties: false,
    });
  });
});

describe('what a call is told', () => {
  const definition = workflow(
    [node('a'), node('b', 'core.identity', { inputs: { x: connection('a', 'x') } })],
    line('a', 'b'),
  );
  const told = (snapshot: Partial<RunSnapshot>) =>
    resultOf(
      { runId: 'run-1', workflowId: definition.id, status: 'running', ...snapshot },
      definition,
      'https://capstan.example',
    );

  it('is what the run gave, and where the run is', () => {
    const done = (x: number) => ({ status: 'completed', outputs: { x } }) as const;
    const states = { a: done(1), b: done(2) };
    expect(told({ status: 'completed', nodeStates: states })).toEqual({
      isError: false,
      content: [{ type: 'text', text: '{"b":{"x":2}}' }],
      structuredContent: {
        runId: 'run-1',
        status: 'completed',
        url: 'https://capstan.example/v1/runs/run-1',
        outputs: { b: { x: 2 } },
      },
    });
  });

  it('leaves out what no model could read', () => {
    const nodeStates = { b: { status: 'completed', outputs: { x: 'x'.repeat(200_000) } } } as const;
    const { content, structuredContent } = told({ status: 'completed', nodeStates });
    expect(JSON.stringify({ content, structuredContent }).length).toBeLessThan(1_000);
  });

  it('names the end that was not the run’s own', () => {
    expect(told({ status: 'cancelled' })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('tool_canceled') }],
    });
  });

  it('says that the run goes on', () => {
    expect(told({ status: 'running' })).toMatchObject({
      isError: false,
      content: [{ text: expect.stringContaining('runStatus') }],
    });
  });
});

describe('a page that asks', () => {
  it.each([
    ['http://127.0.0.1:3210', 'http://127.0.0.1:3210', undefined, true],
    ['http://[::1]:3210', 'http://[::1]:3210', undefined, true],
    ['http://localhost:3210', 'http://localhost:3210', undefined, true],
    ['http://localhost:4000', 'http://localhost:3210', undefined, false],
    ['http://rebound.example:3210', 'http://rebound.example:3210', undefined, false],
    ['https://capstan.example', 'https://capstan.example', 'https://capstan.example', true],
    ['http://rebound.example', 'https://capstan.example', 'https://capstan.example', false],
    ['null', 'http://127.0.0.1:3210', undefined, false],
  ])('from %s of a host at %s, called %s: %s', (given, origin, publicUrl, isOwn) => {
    expect(isOwnOrigin(given, { origin, publicUrl })).toBe(isOwn);
  });
});
