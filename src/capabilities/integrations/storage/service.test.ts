import { afterAll, describe, expect, it } from 'vitest';
import { freshFolder } from '../../../../test/support/database.ts';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import { and, changeOf, perform as performChange } from '../../../runtime/change.ts';
import { KeyedMutex } from '../../../runtime/keyed-mutex.ts';
import { sql } from '../../../store/sql.ts';
import { openSqlite } from '../../../store/sqlite.ts';
import { STORAGE_TABLES } from './records.ts';
import { StorageService } from './service.ts';

const clock = new ManualClock();
const folder = freshFolder();
const store = await openSqlite({ folder: folder.path, clock, migrations: STORAGE_TABLES });
const runtime = { store, mutex: new KeyedMutex() };
const storage = new StorageService(runtime);
const perform = storage.perform.bind(storage);
const scope = { tenant: 'alpha', workspace: '' };
afterAll(async () => {
  await store.close();
  folder.remove();
});

const at = (key: string) => ({ namespace: 'n', key });
const entries = (): Promise<object[]> => store.read(sql('SELECT entry_key FROM kv_entries ORDER BY entry_key'));

describe('a value with an end', () => {
  it('is there until then, as good as gone afterwards, and taken away with the next new one', async () => {
    await perform(scope, { op: 'set', ...at('short'), value: 1, ttlSeconds: 2 });
    clock.advance(1_500);
    expect(await perform(scope, { op: 'get', ...at('short') })).toEqual({ found: true, value: 1, ttlRemainingMs: 500 });
    expect(await perform(scope, { op: 'increment', ...at('short'), delta: 1 })).toEqual({ value: 2, previous: 1 });
    clock.advance(500);
    expect(await perform(scope, { op: 'get', ...at('short') })).toEqual({ found: false });
    expect(await perform(scope, { op: 'cas', ...at('short'), expect: 2, set: 3 })).toEqual({
      swapped: false,
      actual: null,
    });
    expect(await perform(scope, { op: 'list', namespace: 'n', prefix: '', limit: 5 })).toMatchObject({ keys: [] });
    await perform(scope, { op: 'set', ...at('long'), value: 1 });
    expect(await entries()).toEqual([{ entry_key: 'long' }]);
  });

  it('may be replaced after it, as if it had never been', async () => {
    await perform(scope, { op: 'set', ...at('again'), value: 1, ttlSeconds: 1 });
    clock.advance(1_000);
    expect(await perform(scope, { op: 'increment', ...at('again'), delta: 1 })).toEqual({ value: 1, previous: 0 });
    clock.advance(10_000);
    expect(await perform(scope, { op: 'get', ...at('again') })).toEqual({ found: true, value: 1 });
  });
});

describe('a change', () => {
  it('is committed together with what is composed with it, or not at all', async () => {
    const known = {
      sql: 'UPDATE kv_entries SET version = version WHERE entry_key = $1',
      params: ['nobody'],
      expect: 1,
    };
    await perform(scope, { op: 'set', ...at('once'), value: 1 });
    const decide = async () =>
      and(
        await storage.decide(scope, { op: 'increment', ...at('once'), delta: 1 }),
        changeOf(undefined, [{ ...known, expectation: 'effect' }]),
      );
    await expect(performChange(runtime, decide)).rejects.toThrow('effect');
    expect(await perform(scope, { op: 'get', ...at('once') })).toEqual({ found: true, value: 1 });
  });

  it('that another host made obsolete is decided again', async () => {
    const elsewhere = new StorageService({ store, mutex: new KeyedMutex() });
    await perform(scope, { op: 'set', ...at('contended'), value: 1 });
    let decisions = 0;
    const decide = async () => {
      const change = await storage.decide(scope, { op: 'increment', ...at('contended'), delta: 1 });
      if (decisions++ === 0) await elsewhere.perform(scope, { op: 'increment', ...at('contended'), delta: 10 });
      return change;
    };
    expect(await performChange(runtime, decide)).toEqual({ value: 12, previous: 11 });
    expect(decisions).toBe(2);
  });

  it('of one key waits for another, and none is lost', async () => {
    const counts = Array.from({ length: 100 }, () => perform(scope, { op: 'increment', ...at('busy'), delta: 1 }));
    await Promise.all(counts);
    expect(await perform(scope, { op: 'get', ...at('busy') })).toEqual({ found: true, value: 100 });
  });

  it('keeps no secrets, and stays in its tenant and workspace', async () => {
    const token = `ghp_${'a1B2c3D4e5F6'.repeat(3)}`;
    await perform(scope, { op: 'set', ...at('note'), value: `see ${token}` });
    expect(JSON.stringify(await store.read(sql('SELECT value FROM kv_entries')))).not.toContain(token);
    for (const other of [
      { tenant: 'beta', workspace: '' },
      { tenant: 'alpha', workspace: 'north' },
    ]) {
      expect(await perform(other, { op: 'get', ...at('note') })).toEqual({ found: false });
      expect(await perform(other, { op: 'delete', ...at('note') })).toEqual({ deleted: false });
    }
    expect(await perform(scope, { op: 'get', ...at('note') })).toMatchObject({ found: true });
  });
});
