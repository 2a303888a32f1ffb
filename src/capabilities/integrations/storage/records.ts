import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';
import type { StorageScope } from './door.ts';

/** The tables of key-value storage. */
export const STORAGE_TABLES: readonly Migration[] = [
  {
    id: 'storage/0001',
    statements: [
      `CREATE TABLE kv_entries (
        tenant TEXT NOT NULL,
        workspace TEXT NOT NULL,
        namespace TEXT NOT NULL,
        entry_key TEXT NOT NULL,
        value TEXT NOT NULL,
        version BIGINT NOT NULL,
        expires_at BIGINT,
        PRIMARY KEY (tenant, workspace, namespace, entry_key)
      ) $clustered`,
      'CREATE INDEX kv_entries_by_expiry ON kv_entries (tenant, expires_at)',
    ],
  },
];

/** The place of one entry. */
export interface Place extends StorageScope {
  readonly namespace: string;
  readonly key: string;
}

/** An entry as it is stored. */
export interface EntryRow {
  readonly entry_key: string;
  readonly value: string;
  readonly version: number;
  /** Null for an entry without expiry; 0 or less for one that has expired. */
  readonly remaining_ms: number | null;
}

const AT_PLACE = 'tenant = $1 AND workspace = $2 AND namespace = $3 AND entry_key = $4';
const placeParams = ({ tenant, workspace, namespace, key }: Place) => [tenant, workspace, namespace, key] as const;

/** Finds an entry, expired or not. */
export function findEntry(place: Place): Statement {
  return sql(
    `SELECT entry_key, value, version, expires_at - $now AS remaining_ms FROM kv_entries WHERE ${AT_PLACE}`,
    ...placeParams(place),
  );
}

/** Compare-and-swap of the version that was read, or the first one. A concurrent write fails the expectation `entry`. */
export function putEntry(place: Place, value: string, ttlMs: number | null, seen: number | undefined): Write {
  if (seen === undefined) {
    return {
      sql: `INSERT INTO kv_entries (tenant, workspace, namespace, entry_key, value, version, expires_at)
            VALUES ($1, $2, $3, $4, $5, 1, $now + CAST($6 AS BIGINT)) ON CONFLICT DO NOTHING`,
      params: [...placeParams(place), value, ttlMs],
      expect: 1,
      expectation: 'entry',
    };
  }
  return {
    sql: `UPDATE kv_entries SET value = $5, version = version + 1, expires_at = $now + CAST($6 AS BIGINT)
          WHERE ${AT_PLACE} AND version = $7`,
    params: [...placeParams(place), value, ttlMs, seen],
    expect: 1,
    expectation: 'entry',
  };
}

/** Changes the value of the version that was read and leaves its expiry as it is. */
export function changeEntry(place: Place, value: string, seen: number): Write {
  return {
    sql: `UPDATE kv_entries SET value = $5, version = version + 1 WHERE ${AT_PLACE} AND version = $6`,
    params: [...placeParams(place), value, seen],
    expect: 1,
    expectation: 'entry',
  };
}

/** Deletes the version that was read. */
export function deleteEntry(place: Place, seen: number): Write {
  return {
    sql: `DELETE FROM kv_entries WHERE ${AT_PLACE} AND version = $5`,
    params: [...placeParams(place), seen],
    expect: 1,
    expectation: 'entry',
  };
}

/** Which keys to list. */
interface Listing extends StorageScope {
  readonly namespace: string;
  readonly prefix: string;
  readonly after: string;
  readonly limit: number;
}

/** The live keys with a prefix, in order. */
export function listEntries({ tenant, workspace, namespace, prefix, after, limit }: Listing): Statement {
  return sql(
    `SELECT entry_key FROM kv_entries
     WHERE tenant = $1 AND workspace = $2 AND namespace = $3 AND entry_key > $4
       AND substr(entry_key, 1, length(CAST($5 AS TEXT))) = $5 AND (expires_at IS NULL OR expires_at > $now)
     ORDER BY entry_key LIMIT $6`,
    tenant,
    workspace,
    namespace,
    after,
    prefix,
    limit,
  );
}

/** Counts the entries of a workspace, at most up to a limit. */
export function countEntries({ tenant, workspace }: StorageScope, limit: number): Statement {
  return sql(
    `SELECT COUNT(*) AS entries FROM
     (SELECT 1 FROM kv_entries WHERE tenant = $1 AND workspace = $2 LIMIT $3) AS counted`,
    tenant,
    workspace,
    limit,
  );
}

/** Deletes some expired entries of a tenant. */
export function deleteExpired(tenant: string, limit: number): Write {
  return {
    sql: `DELETE FROM kv_entries WHERE (tenant, workspace, namespace, entry_key) IN
          (SELECT tenant, workspace, namespace, entry_key FROM kv_entries
           WHERE tenant = $1 AND expires_at <= $now LIMIT $2)`,
    params: [tenant, limit],
  };
}
