import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freshFolder } from '../../test/support/database.ts';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { openSqlite } from './sqlite.ts';
import type { Migration, Store } from './store.ts';

/** Goal: what was deleted does not take up room for ever. Method: a store is filled, emptied, and its file measured. */

const TABLE: Migration = { id: 'test/0001', statements: ['CREATE TABLE things (id BIGINT PRIMARY KEY, body TEXT)'] };
/** So many that what is written ahead of the file goes into it. */
const THINGS = 6_000;

describe('the file of the embedded store', () => {
  let folder: ReturnType<typeof freshFolder>;
  let store: Store;
  const open = async (): Promise<void> => {
    store = await openSqlite({ folder: folder.path, clock: new ManualClock(), migrations: [TABLE], durable: false });
  };
  const file = (): string => join(folder.path, 'capstan.db');
  const bytes = (): number => statSync(file()).size;
  const fill = async (): Promise<void> => {
    const body = 'x'.repeat(4_000);
    const write = (id: number) => ({ sql: 'INSERT INTO things (id, body) VALUES ($1, $2)', params: [id, body] });
    await store.commit(Array.from({ length: THINGS }, (_, id) => write(id)));
  };
  const remove = (from: number): Promise<unknown> =>
    store.commit([{ sql: 'DELETE FROM things WHERE id >= $1', params: [from] }]);
  beforeEach(async () => {
    folder = freshFolder();
    await open();
  });
  afterEach(async () => {
    await store.close();
    folder.remove();
  });

  it('becomes smaller when most of it is free, and loses nothing', async () => {
    await fill();
    const before = bytes();
    await remove(100);
    await store.reclaim();
    expect(bytes()).toBeLessThan(before / 10);
    expect(await store.read({ sql: 'SELECT COUNT(*) AS count FROM things', params: [] })).toEqual([{ count: 100 }]);
  });

  it('becomes smaller with the next start, too', async () => {
    await fill();
    const before = bytes();
    await remove(100);
    await store.close();
    expect(bytes()).toBeGreaterThan(before / 2);
    await open();
    expect(bytes()).toBeLessThan(before / 10);
    expect(await store.read({ sql: 'SELECT COUNT(*) AS count FROM things', params: [] })).toEqual([{ count: 100 }]);
  });

  it('stays as it is while little of it is free: that will be used again', async () => {
    await fill();
    await remove(Math.floor(THINGS * 0.9));
    const before = bytes();
    await store.reclaim();
    expect(bytes()).toBe(before);
  });
});
