import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freshFolder } from '../../test/support/database.ts';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { openSqlite } from './sqlite.ts';
import type { Migration, Store } from './store.ts';

/** Goal: deleting rows frees disk space. Method: fill a store, delete its rows and measure the file. */

const TABLE: Migration = { id: 'test/0001', statements: ['CREATE TABLE items (id BIGINT PRIMARY KEY, body TEXT)'] };
const ROWS = 6_000;

describe('the SQLite file', () => {
  let folder: ReturnType<typeof freshFolder>;
  let store: Store;
  const open = async (): Promise<void> => {
    store = await openSqlite({ folder: folder.path, clock: new ManualClock(), migrations: [TABLE] });
  };
  const file = (): string => join(folder.path, 'capstan.db');
  const bytes = (): number => statSync(file()).size;
  const fill = async (): Promise<void> => {
    const body = 'x'.repeat(4_000);
    const write = (id: number) => ({ sql: 'INSERT INTO items (id, body) VALUES ($1, $2)', params: [id, body] });
    await store.commit(Array.from({ length: ROWS }, (_, id) => write(id)));
    // Closing moves the rows from the write-ahead log into the file.
    await store.close();
    await open();
  };
  const remove = (from: number): Promise<unknown> =>
    store.commit([{ sql: 'DELETE FROM items WHERE id >= $1', params: [from] }]);
  beforeEach(async () => {
    folder = freshFolder();
    await open();
  });
  afterEach(async () => {
    await store.close();
    folder.remove();
  });

  it('shrinks when most pages are free, and keeps the remaining rows', async () => {
    await fill();
    const before = bytes();
    await remove(100);
    await store.reclaim();
    expect(bytes()).toBeLessThan(before / 10);
    expect(await store.read({ sql: 'SELECT COUNT(*) AS count FROM items', params: [] })).toEqual([{ count: 100 }]);
  });

  it('also shrinks at the next start', async () => {
    await fill();
    const before = bytes();
    await remove(100);
    await store.close();
    expect(bytes()).toBeGreaterThan(before / 2);
    await open();
    expect(bytes()).toBeLessThan(before / 10);
    expect(await store.read({ sql: 'SELECT COUNT(*) AS count FROM items', params: [] })).toEqual([{ count: 100 }]);
  });

  it('does not change while few pages are free: SQLite reuses them', async () => {
    await fill();
    await remove(Math.floor(ROWS * 0.9));
    const before = bytes();
    await store.reclaim();
    expect(bytes()).toBe(before);
  });
});
