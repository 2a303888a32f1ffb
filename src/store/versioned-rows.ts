import type { Param, Statement, Write } from './sql.ts';
import { sql } from './sql.ts';
import type { Store } from './store.ts';

/**
 * Two tables for things with versions that never change. The head has one row per thing: which version is current (null
 * once all are removed), and `revision`, which every change increments. The other table has every version there ever was;
 * a removed one stays with `removed_at`, so that its number is never given to other content.
 */
export interface VersionedTables {
  readonly heads: string;
  readonly versions: string;
  /** The column of both tables that names the thing. */
  readonly id: string;
  /** The column of the head that points at the current version. */
  readonly pointer: string;
}

/** A thing with versions: who owns it, and its name. */
export interface VersionedKey {
  readonly owner: string;
  readonly id: string;
}

interface Version {
  readonly version: string;
  readonly removed_at: number | null;
}

/** What is stored about a thing, read before a change of it is decided. */
export interface History<V extends Version> {
  readonly key: VersionedKey;
  /** Zero while there is no row. */
  readonly revision: number;
  /** Every version there ever was, the one that became current last first. */
  readonly versions: readonly V[];
}

/** Reads the history of a thing: its revision, and these columns of its versions. */
export async function readHistory<V extends Version>(
  store: Store,
  tables: VersionedTables,
  key: VersionedKey,
  columns: readonly (keyof V & string)[],
): Promise<History<V>> {
  const [head] = await store.read<{ revision: number }>(select('revision', tables.heads, tables, key));
  const { sql: versionsOf, params } = select(columns.join(', '), tables.versions, tables, key);
  const versions = await store.read<V>({ sql: `${versionsOf} ORDER BY revision DESC`, params });
  return { key, revision: head?.revision ?? 0, versions };
}

function select(columns: string, table: string, { id }: VersionedTables, key: VersionedKey): Statement {
  return sql(`SELECT ${columns} FROM ${table} WHERE owner = $1 AND ${id} = $2`, key.owner, key.id);
}

/** Whether a version can be used, and is not only kept so that its number stays taken. */
export function isInstalled({ removed_at }: Version): boolean {
  return removed_at === null;
}

/**
 * Makes a version current, or none. Expects that nobody else changed the thing since its history was read; the name of
 * that expectation is `revision`. `columns` are further columns of the head to set.
 */
export function moveCurrent(
  { heads, id, pointer }: VersionedTables,
  { key, revision }: Pick<History<Version>, 'key' | 'revision'>,
  version: string | null,
  columns: Readonly<Record<string, Param>> = {},
): Write {
  const set = { [pointer]: version, ...columns };
  const params: Param[] = [key.owner, key.id, ...Object.values(set)];
  const names = Object.keys(set);
  const values = names.map((_, index) => `$${index + 3}`);
  if (revision === 0) {
    return {
      sql: `INSERT INTO ${heads} (owner, ${id}, revision, ${names.join(', ')}) VALUES ($1, $2, 1, ${values.join(', ')})
            ON CONFLICT (owner, ${id}) DO NOTHING`,
      params,
      expect: 1,
      expectation: 'revision',
    };
  }
  const changes = names.map((name, index) => `${name} = ${values[index]}`).join(', ');
  return {
    sql: `UPDATE ${heads} SET revision = revision + 1, ${changes}
          WHERE owner = $1 AND ${id} = $2 AND revision = $${params.push(revision)}`,
    params,
    expect: 1,
    expectation: 'revision',
  };
}

/** Removes one version, or all of them; versions that were removed before keep their time of removal. */
export function removeVersions(
  { versions, id }: VersionedTables,
  { owner, id: name }: VersionedKey,
  now: number,
  version?: string,
): Write {
  return {
    sql: `UPDATE ${versions} SET removed_at = $3 WHERE owner = $1 AND ${id} = $2 AND removed_at IS NULL
          ${version === undefined ? '' : 'AND version = $4'}`,
    params: [owner, name, now, ...(version === undefined ? [] : [version])],
  };
}
