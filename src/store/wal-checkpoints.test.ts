import { closeSync, existsSync, fstatSync, openSync, readSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { freshFolder } from '../../test/support/database.ts';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { realClock } from '../system/real.ts';
import { openSqlite } from './sqlite.ts';
import type { Connection } from './sqlite-connection.ts';
import type { Migration, StoreFailure } from './store.ts';
import { WalCheckpoints } from './wal-checkpoints.ts';
import type { FlushFile } from './wal-flush.ts';

/** Goal: the write-ahead log stays short while commits go on. Method: more commits than it should hold. */

const TABLE: Migration = { id: 'test/0001', statements: ['CREATE TABLE items (id BIGINT PRIMARY KEY, body TEXT)'] };
const PAGE_BYTES = 4_096;
const NO_DATABASE = 'this is no database, and it is long enough to be looked at as one. '.repeat(100);

let folder: ReturnType<typeof freshFolder>;
beforeEach(() => {
  folder = freshFolder();
});
afterEach(() => folder.remove());

const open = (log = { warn: vi.fn(), error: vi.fn() }, flushFile?: FlushFile) =>
  openSqlite({ folder: folder.path, clock: realClock, migrations: [TABLE], log, ...(flushFile && { flushFile }) });

/** How often the log has begun anew, as its header says. */
function beginnings(wal: string): number {
  const file = openSync(wal, 'r');
  const header = Buffer.alloc(32);
  readSync(file, header, 0, header.length, 0);
  closeSync(file);
  return header.readUInt32BE(12);
}

it('the log begins anew, nothing is lost, and closing leaves no log behind', async () => {
  const log = { warn: vi.fn(), error: vi.fn() };
  const store = await open(log);
  const wal = join(folder.path, 'capstan.db-wal');
  let items = 0;
  const insert = (body: string) =>
    store.commit([{ sql: 'INSERT INTO items (id, body) VALUES ($1, $2)', params: [items++, body] }]);
  const before = beginnings(wal);
  const pages = 8_000;
  const body = 'x'.repeat(400_000);
  while (items * body.length < pages * PAGE_BYTES) await insert(body);
  await vi.waitFor(
    async () => {
      await insert('short');
      expect(beginnings(wal)).toBeGreaterThan(before);
    },
    { timeout: 20_000 },
  );
  await store.close();
  expect(existsSync(wal)).toBe(false);
  expect(log.warn).not.toHaveBeenCalled();

  const again = await open();
  expect(await again.read({ sql: 'SELECT COUNT(*) AS items FROM items', params: [] })).toEqual([{ items }]);
  await again.close();
});

it('a copy that fails is reported, and is not tried again at once', async () => {
  const file = join(folder.path, 'text');
  writeFileSync(file, NO_DATABASE);
  const clock = new ManualClock();
  const all = vi.fn();
  const { checkpoints, warn, onStop } = checkpointsOf(file, { clock, connection: { all } });
  checkpoints.afterCommit(4_000);
  await checkpoints.end();
  expect(warn).toHaveBeenCalledOnce();
  checkpoints.afterCommit(15_999);
  await checkpoints.end();
  expect(warn, 'left alone').toHaveBeenCalledOnce();
  expect(all).not.toHaveBeenCalled();
  checkpoints.afterCommit(16_000);
  expect(all, 'copied between two commits, because the log has become too long').toHaveBeenCalledOnce();
  await clock.advance(10_000);
  checkpoints.afterCommit(4_000);
  await checkpoints.end();
  expect(warn, 'tried again').toHaveBeenCalledTimes(2);
  expect(onStop).not.toHaveBeenCalled();
  await checkpoints.close();
});

it('a database that does not get to the disk stops the store, and the log is not given up', async () => {
  const file = join(folder.path, 'own.db');
  const database = new DatabaseSync(file);
  database.exec('PRAGMA journal_mode = WAL; CREATE TABLE items (body TEXT)');
  const all = vi.fn();
  const flushFile = () => Promise.reject(new Error('EIO'));
  const { checkpoints, onStop } = checkpointsOf(file, { connection: { all }, flushFile });
  checkpoints.afterCommit(4_000);
  checkpoints.check();
  await checkpoints.end();
  expect(() => checkpoints.check()).toThrow(/restart the host/);
  expect(onStop).toHaveBeenCalledOnce();
  expect(existsSync(`${file}-unsynced`), 'the next start knows').toBe(true);
  checkpoints.afterCommit(1_000_000);
  expect(all, 'nothing else is copied').not.toHaveBeenCalled();
  database.close();
  await checkpoints.close();
});

const FAILED_SYNC = Object.assign(new Error('disk I/O error'), { errcode: 1_034 });

it.each([
  ['and our descriptor of the database hears of it, too', () => Promise.reject(new Error('EIO')), 1],
  ['and it was that of the log', async () => {}, 0],
])(
  'if a sync of SQLite fails %s, the store stops only if the disk may lack the database',
  async (_, flushFile, stops) => {
    const file = join(folder.path, 'text');
    writeFileSync(file, NO_DATABASE);
    const all = vi.fn(() => {
      throw FAILED_SYNC;
    });
    const { checkpoints, onStop } = checkpointsOf(file, { connection: { all }, flushFile });
    // The thread fails, for another reason; then the log is copied between two commits.
    for (let copies = 0; copies < 2; copies++) {
      checkpoints.afterCommit(16_000);
      await checkpoints.end();
    }
    expect(all).toHaveBeenCalledOnce();
    expect(onStop).toHaveBeenCalledTimes(stops);
    await checkpoints.close();
  },
);

it('and neither acknowledges nor shows anything any more', async () => {
  const file = join(folder.path, 'capstan.db');
  const isDatabase = (open: number): boolean => fstatSync(open).ino === statSync(file).ino;
  const log = { warn: vi.fn(), error: vi.fn() };
  const store = await open(log, async (opened) => {
    if (isDatabase(opened)) throw new Error('EIO');
  });
  const insert = (id: number, body: string) =>
    store.commit([{ sql: 'INSERT INTO items (id, body) VALUES ($1, $2)', params: [id, body] }]);
  await insert(0, 'x'.repeat(4_100 * PAGE_BYTES));
  let id = 1;
  await vi.waitFor(() => expect(insert(id++, 'short')).rejects.toThrow(/restart the host/), { timeout: 20_000 });
  await expect(store.read({ sql: 'SELECT id FROM items', params: [] })).rejects.toThrow(/restart the host/);
  await store.close();
  expect(existsSync(`${file}-wal`), 'the log is kept').toBe(true);
  const again = await open();
  const [row] = await again.read<{ items: number }>({ sql: 'SELECT COUNT(*) AS items FROM items', params: [] });
  expect(row!.items).toBe(id - 1);
  await again.close();
});

it('a log of which something could not be flushed is not copied', async () => {
  const file = join(folder.path, 'own.db');
  const database = new DatabaseSync(file);
  database.exec('PRAGMA journal_mode = WAL; CREATE TABLE items (body TEXT)');
  const before = statSync(file).size;
  const checkLog = () => {
    throw new Error('not flushed');
  };
  const { checkpoints, warn } = checkpointsOf(file, { checkLog });
  checkpoints.afterCommit(4_000);
  await checkpoints.end();
  expect(warn).toHaveBeenCalledOnce();
  expect(statSync(file).size).toBe(before);
  database.close();
  await checkpoints.close();
});

it('a short log is left alone', async () => {
  const file = join(folder.path, 'text');
  writeFileSync(file, 'no database');
  const { checkpoints, warn } = checkpointsOf(file);
  for (let commits = 0; commits < 100; commits++) checkpoints.afterCommit(3_999);
  await checkpoints.end();
  expect(warn).not.toHaveBeenCalled();
  await checkpoints.close();
});

interface Parts {
  readonly clock?: ManualClock;
  readonly connection?: Partial<Connection>;
  readonly flushFile?: FlushFile;
  readonly checkLog?: () => void;
}

function checkpointsOf(
  file: string,
  { clock = new ManualClock(), connection = {}, flushFile, checkLog = () => {} }: Parts = {},
) {
  const warn = vi.fn();
  const onStop = vi.fn<(failure: StoreFailure) => void>();
  const log = { warn, error: vi.fn() };
  const checkpoints = new WalCheckpoints(file, connection as Connection, { clock, log, flushFile, checkLog, onStop });
  return { checkpoints, warn, onStop };
}
