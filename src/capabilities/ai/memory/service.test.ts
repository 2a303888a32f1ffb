import { afterAll, describe, expect, it } from 'vitest';
import { callerOf, openServiceHost } from '../../../../test/support/service-host.ts';
import { NOT_FOUND } from '../../../protocol/errors.ts';
import { changeOf, perform as performChange } from '../../../runtime/change.ts';
import type { AuditRecord } from '../../trust/audit/door.ts';
import { MEMORY_TABLES } from './records.ts';
import { MemoryService } from './service.ts';

const { host, clock, close } = await openServiceHost({ tables: MEMORY_TABLES });
afterAll(close);

const audited: string[] = [];
const audit = {
  entry: ({ actor, action, target }: AuditRecord) =>
    changeOf(undefined, [], { announce: [() => audited.push(`${actor} ${action} ${target}`)] }),
};
const models = [{ credentialRef: 'OPENAI_KEY', secret: 'correct horse battery' }];
const memory = new MemoryService(host, { audit }, { models });
const perform = memory.perform.bind(memory);

let effects = 0;
const user = (effectId = `effect-${++effects}`) => ({ tenant: 'alpha', runId: 'run-1', nodeId: 'a', effectId });
const put = (content: string, more: object = {}) =>
  ({ op: 'put', memoryRef: 'm', content, tags: [], ...more }) as const;
const list = (limit = 10) => ({ op: 'list', memoryRef: 'm', limit }) as const;
const idOf = async (memoryRef: string, content = 'x'): Promise<string> =>
  (await perform(user(), put(content, { memoryRef }))).entries[0]!.id;

describe('a memory', () => {
  it('has an entry once, however often the write is attempted', async () => {
    const [first] = (await perform(user('again'), put('once'))).entries;
    const [second] = (await perform(user('again'), put('once'))).entries;
    expect(second).toEqual(first);
    expect((await perform(user(), list())).entries).toEqual([first]);
  });

  it('has an entry once, also when two hosts attempt the write at once', async () => {
    const twins = Array.from({ length: 5 }, () => perform(user('twins'), { ...put('same'), memoryRef: 'twins' }));
    const written = (await Promise.all(twins)).map(({ entries }) => entries);
    expect((await perform(user(), { ...list(), memoryRef: 'twins' })).entries).toEqual(written[0]);
    for (const each of written) expect(each).toEqual(written[0]);
  });

  it('stores the names of secrets instead of their values', async () => {
    const secrets = [{ id: 'vault-1', value: 'xyzzy-plugh' }];
    const { entries } = await perform(user(), put('correct horse battery, xyzzy-plugh', { secrets }));
    expect(entries[0]?.content).toBe('[REDACTED:OPENAI_KEY], [REDACTED:vault-1]');
  });

  it('shows no expired entries', async () => {
    const { entries } = await perform(user(), { ...put('short'), memoryRef: 'ttl', ttlSeconds: 2 });
    const get = { op: 'get', memoryRef: 'ttl', memoryId: entries[0]!.id } as const;
    clock.advance(1_999);
    expect((await perform(user(), get)).entries).toEqual(entries);
    clock.advance(1);
    expect((await perform(user(), get)).entries).toEqual([]);
    expect((await perform(user(), { ...list(), memoryRef: 'ttl' })).entries).toEqual([]);
  });

  it('refuses entries beyond its limit, and only those', async () => {
    const full = { ...put('x'), memoryRef: 'full' };
    for (let count = 0; count < 1_000; count++) await perform(user(), full);
    await expect(perform(user(), full)).rejects.toThrow('1000 entries');
    await perform(user(), put('elsewhere there is room'));
  });

  it('merges duplicates into the newest, with the tags of all', async () => {
    await perform(user(), put('Prefers e-mail.', { memoryRef: 'twice', tags: ['a'] }));
    const kept = await perform(user(), put('prefers  e-mail', { memoryRef: 'twice', tags: ['b'] }));
    const { entries, left } = await perform(user(), { op: 'consolidate', memoryRef: 'twice' });
    expect(entries.map(({ content }) => content)).toEqual(['Prefers e-mail.']);
    expect(left).toBe(1);
    const after = (await perform(user(), { ...list(), memoryRef: 'twice' })).entries;
    expect(after).toEqual([{ ...kept.entries[0], tags: ['b', 'a'] }]);
  });
});

describe('what people see of memory', () => {
  const ada = callerOf('alpha');
  const filter = { memoryRef: 'seen', tag: undefined, before: undefined };

  it('is deleted with an audit entry, and not found afterwards', async () => {
    const id = await idOf('seen');
    expect(await memory.find(ada, id)).toMatchObject({ id, memoryRef: 'seen', runId: 'run-1', nodeId: 'a' });
    await performChange(host.runtime, () => memory.remove(ada, id));
    expect(await memory.find(ada, id)).toBe(NOT_FOUND);
    expect(await performChange(host.runtime, () => memory.remove(ada, id))).toBe(NOT_FOUND);
    expect(audited).toEqual([`ada memory.forget ${id}`]);
  });

  it('stays in its tenant and workspace', async () => {
    const id = await idOf('seen');
    for (const other of [callerOf('beta'), callerOf('alpha', 'north')]) {
      expect(await memory.find(other, id)).toBe(NOT_FOUND);
      expect(await memory.list(other, filter, 10)).toEqual([]);
      await performChange(host.runtime, () => memory.removeAll(other, 'seen'));
    }
    expect(await memory.list(ada, filter, 10)).toHaveLength(1);
    await performChange(host.runtime, () => memory.removeAll(ada, 'seen'));
    expect(await memory.list(ada, filter, 10)).toEqual([]);
  });
});
