import { afterAll, describe, expect, it } from 'vitest';
import { freshFolder } from '../../../../test/support/database.ts';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import { openSqlite } from '../../../store/sqlite.ts';
import { realIds } from '../../../system/real.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import { MEMORY_TABLES } from './records.ts';
import { memoryService } from './service.ts';

const clock = new ManualClock();
const folder = freshFolder();
const store = await openSqlite({ folder: folder.path, clock, migrations: MEMORY_TABLES });
const host = {
  runtime: { store, clock, ids: realIds() },
  settings: { models: [{ credentialRef: 'OPENAI_KEY', secret: 'correct horse battery' }] },
} as unknown as Host;
const { perform } = memoryService(host, { audit: { record: () => [] } });
afterAll(async () => {
  await store.close();
  folder.remove();
});

let effects = 0;
const user = (effectId = `effect-${++effects}`) => ({ tenant: 'alpha', runId: 'run-1', nodeId: 'a', effectId });
const put = (content: string, more: object = {}) =>
  ({ op: 'put', memoryRef: 'm', content, tags: [], ...more }) as const;
const list = (limit = 10) => ({ op: 'list', memoryRef: 'm', limit }) as const;

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

  it('calls values that the host or the run was entrusted with by their names', async () => {
    const secrets = [{ id: 'vault-1', value: 'xyzzy-plugh' }];
    const { entries } = await perform(user(), put('correct horse battery, xyzzy-plugh', { secrets }));
    expect(entries[0]?.content).toBe('[REDACTED:OPENAI_KEY], [REDACTED:vault-1]');
  });

  it('shows nothing whose time is up', async () => {
    const { entries } = await perform(user(), { ...put('short'), memoryRef: 'ttl', ttlSeconds: 2 });
    const get = { op: 'get', memoryRef: 'ttl', memoryId: entries[0]!.id } as const;
    clock.advance(1_999);
    expect((await perform(user(), get)).entries).toEqual(entries);
    clock.advance(1);
    expect((await perform(user(), get)).entries).toEqual([]);
    expect((await perform(user(), { ...list(), memoryRef: 'ttl' })).entries).toEqual([]);
  });

  it('takes no more than it may hold', async () => {
    const full = { ...put('x'), memoryRef: 'full' };
    for (let count = 0; count < 1_000; count++) await perform(user(), full);
    await expect(perform(user(), full)).rejects.toThrow('1000 entries');
    await perform(user(), put('elsewhere there is room'));
  });
});
