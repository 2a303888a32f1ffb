import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defineCapability } from '../src/capabilities/capability.ts';
import { readConfig } from '../src/config.ts';
import { startHost } from '../src/host.ts';
import { openSqlite } from '../src/store/sqlite.ts';
import type { Migration, Store } from '../src/store/store.ts';
import type { Log } from '../src/system/log.ts';
import { realClock, realIds } from '../src/system/real.ts';
import { realLog } from '../src/system/real-log.ts';
import { freshFolder } from './support/database.ts';
import { breakDisk, mendDisk } from './support/failing-disk.ts';
import { ManualClock } from './support/manual-clock.ts';

/** Goal: what the embedded store promises of its file. Method: it is asked over its own connection, or its disk fails. */

const ITEMS: Migration = { id: 'test/0001', statements: ['CREATE TABLE items (id BIGINT PRIMARY KEY, body TEXT)'] };
/** What SQLite calls flushing before every checkpoint; commits are flushed by the store itself (`wal-flush.ts`). */
const NORMAL = 1;

describe('the SQLite store', () => {
  let folder: ReturnType<typeof freshFolder>;
  beforeEach(() => {
    folder = freshFolder();
  });
  afterEach(() => folder.remove());

  const pragma = async (store: Store, name: string): Promise<unknown> => {
    const [row] = await store.read<Record<string, unknown>>({ sql: `PRAGMA ${name}`, params: [] });
    return Object.values(row!)[0];
  };

  it('keeps its file sound in a power failure, in a host as it is started', async () => {
    let store: Store | undefined;
    const looking = defineCapability({
      name: 'looking',
      build: ({ runtime }) => {
        store = runtime.store;
        return {};
      },
    });
    const config = { ...readConfig({ data: folder.path, port: '0', log: 'silent' }, {}) };
    const system = { clock: realClock, ids: realIds(), log: await realLog('silent', false) };
    const host = await startHost(config, system, [looking]);
    expect(await pragma(store!, 'synchronous')).toBe(NORMAL);
    expect(await pragma(store!, 'journal_mode')).toBe('wal');
    await host.stop();
  });

  it('opens, and says so, if there is no room to compact the file', async () => {
    const options = { folder: folder.path, clock: new ManualClock(), migrations: [ITEMS] };
    const filled = await openSqlite(options);
    const body = 'x'.repeat(4_000);
    await filled.commit(
      Array.from({ length: 6_000 }, (_, id) => ({ sql: 'INSERT INTO items VALUES ($1, $2)', params: [id, body] })),
    );
    await filled.commit([{ sql: 'DELETE FROM items WHERE id >= 3000', params: [] }]);
    await filled.close();
    const warnings: string[] = [];
    const log: Pick<Log, 'warn' | 'error'> = { warn: (_, message) => void warnings.push(message), error: () => {} };
    breakDisk(process.pid, 4_000_000);
    const store = await openSqlite({ ...options, log }).finally(() => mendDisk(process.pid));
    expect(warnings).toEqual(['the database file could not be compacted and keeps its size']);
    expect(await store.read({ sql: 'SELECT COUNT(*) AS count FROM items', params: [] })).toEqual([{ count: 3_000 }]);
    await store.close();
  });

  it('says of a full disk that the store failed, and goes on when there is room', async () => {
    const store = await openSqlite({ folder: folder.path, clock: new ManualClock(), migrations: [ITEMS] });
    const insert = (id: number): ReturnType<Store['commit']> =>
      store.commit([{ sql: 'INSERT INTO items VALUES ($1, $2)', params: [id, 'x'.repeat(100_000)] }]);
    await pragma(store, 'max_page_count = 1');
    await expect(insert(1)).rejects.toMatchObject({ name: 'StoreFailure' });
    await pragma(store, 'max_page_count = 1000000');
    expect(await insert(1)).toMatchObject({ committed: true });
    await store.close();
  });
});
