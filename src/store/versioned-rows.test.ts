import { afterAll, describe, expect, it } from 'vitest';
import { freshFolder } from '../../test/support/database.ts';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { openSqlite } from './sqlite.ts';
import { isInstalled, moveCurrent, readHistory, removeVersions, type VersionedTables } from './versioned-rows.ts';

const TABLES: VersionedTables = { heads: 'things', versions: 'thing_versions', id: 'name', pointer: 'current' };
const folder = freshFolder();
const store = await openSqlite({
  folder: folder.path,
  clock: new ManualClock(),
  migrations: [
    {
      id: 'test/0001',
      statements: [
        `CREATE TABLE things (owner TEXT, name TEXT, revision BIGINT, current TEXT, updated_at BIGINT,
          PRIMARY KEY (owner, name))`,
        `CREATE TABLE thing_versions (owner TEXT, name TEXT, version TEXT, revision BIGINT, removed_at BIGINT,
          PRIMARY KEY (owner, name, version))`,
      ],
    },
  ],
});
afterAll(async () => {
  await store.close();
  folder.remove();
});

const key = { owner: 'alpha', id: 'thing' };
const history = () =>
  readHistory<{ version: string; removed_at: number | null }>(store, TABLES, key, ['version', 'removed_at']);
const insert = (version: string, revision: number) => ({
  sql: 'INSERT INTO thing_versions (owner, name, version, revision) VALUES ($1, $2, $3, $4)',
  params: [key.owner, key.id, version, revision],
});

describe('versioned rows', () => {
  it('keep every version, the one that became current last first', async () => {
    const empty = await history();
    expect(empty).toEqual({ key, revision: 0, versions: [] });
    for (const version of ['1.0.0', '2.0.0']) {
      const before = await history();
      const unit = [moveCurrent(TABLES, before, version, { updated_at: 7 }), insert(version, before.revision + 1)];
      expect(await store.commit(unit)).toMatchObject({ committed: true });
    }
    const { revision, versions } = await history();
    expect(revision).toBe(2);
    expect(versions.map(({ version }) => version)).toEqual(['2.0.0', '1.0.0']);
    expect(await store.read({ sql: 'SELECT current, updated_at FROM things', params: [] })).toEqual([
      { current: '2.0.0', updated_at: 7 },
    ]);
  });

  it('refuse a change that was decided from an older revision', async () => {
    const conflict = { committed: false, failedExpectation: 'revision' };
    expect(await store.commit([moveCurrent(TABLES, { key, revision: 0 }, '3.0.0', { updated_at: 8 })])).toEqual(
      conflict,
    );
    expect(await store.commit([moveCurrent(TABLES, { key, revision: 1 }, '3.0.0', { updated_at: 8 })])).toEqual(
      conflict,
    );
  });

  it('mark versions as removed, and keep when they were', async () => {
    await store.commit([removeVersions(TABLES, key, 10, '1.0.0')]);
    expect((await history()).versions.filter(isInstalled)).toEqual([{ version: '2.0.0', removed_at: null }]);
    await store.commit([removeVersions(TABLES, key, 20)]);
    expect((await history()).versions.map(({ removed_at }) => removed_at)).toEqual([20, 10]);
  });
});
