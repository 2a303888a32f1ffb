import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { capabilities, loadConformance } from '../src/capabilities/index.ts';
import { checksumOf, planMigrations } from '../src/store/migrations.ts';
import type { Migration } from '../src/store/store.ts';
import { CORE_TABLES } from '../src/store/tables.ts';
import { effectOf } from '../src/store/upgrade.ts';

/**
 * Goal: every store of a version has the same tables. Method: the checksums of migrations that stores have seen are kept
 * in a file, and this program must still have the same ones. A change of the schema is a new migration; add its line.
 */

const CHECKSUMS = JSON.parse(readFileSync(new URL('./migration-checksums.json', import.meta.url), 'utf8')) as Record<
  string,
  [sqlite: string, postgres: string]
>;
const SHOWN = 16;
/** Migrations of the first version, which had no hosts before it. */
const BEFORE_ALL_HOSTS = ['audit/0001'];

const first: Migration = { id: 'core/0001', statements: ['CREATE TABLE a (b TEXT)'] };
const second: Migration = { id: 'core/0002', statements: [{ sqlite: 'CREATE INDEX c ON a (b)' }] };
const applied = (migration: Migration) => ({ id: migration.id, checksum: checksumOf('sqlite', migration) });

describe('migrations', () => {
  it('are what they were when they were first applied', async () => {
    const mounted = [...capabilities, ...(await loadConformance())];
    const all = [...CORE_TABLES, ...mounted.flatMap(({ tables }) => tables)];
    const now = new Map(
      all.map((migration) => [
        migration.id,
        [checksumOf('sqlite', migration).slice(0, SHOWN), checksumOf('postgres', migration).slice(0, SHOWN)],
      ]),
    );
    expect(Object.fromEntries(Object.keys(CHECKSUMS).map((id) => [id, now.get(id)]))).toEqual(CHECKSUMS);
  });

  it('leave the hosts of the version before at work: what they need is taken away a version later', async () => {
    const all = [...CORE_TABLES, ...[...capabilities, ...(await loadConformance())].flatMap(({ tables }) => tables)];
    expect(all.filter((migration) => effectOf('postgres', migration) === 'alone').map(({ id }) => id)).toEqual(
      BEFORE_ALL_HOSTS,
    );
  });

  it('that are missing are applied, in order', () => {
    expect(planMigrations('sqlite', [first, second], [applied(first)])).toEqual({
      missing: [second],
      withoutChecksum: [],
    });
  });

  it('from before checksums get one', () => {
    expect(planMigrations('sqlite', [first], [{ id: first.id, checksum: null }]).withoutChecksum).toEqual([first]);
  });

  it('of a newer program stop an older one', () => {
    expect(() => planMigrations('sqlite', [first], [applied(first), applied(second)])).toThrow('core/0002');
  });

  it('of a family that is not mounted stop nobody', () => {
    const other = { id: 'conformance/0001', checksum: 'x' };
    expect(planMigrations('sqlite', [first], [applied(first), other]).missing).toEqual([]);
  });

  it('that were edited stop the program', () => {
    const edited = { ...first, statements: ['CREATE TABLE a (b BIGINT)'] };
    expect(() => planMigrations('sqlite', [edited], [applied(first)])).toThrow('core/0001');
  });
});
