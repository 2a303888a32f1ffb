import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

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

/** Whose entries: another tenant's or workspace's are not there. */
export interface Scope {
  readonly tenant: string;
  readonly workspace: string;
}

export interface Place extends Scope {
  readonly namespace: string;
  readonly key: string;
}

export interface EntryRow {
  readonly entry_key: string;
  readonly value: string;
  readonly version: number;
  /** Null for what stays; not above 0 for what is as good as gone. */
  readonly remaining_ms: number | null;
}

const HERE = 'tenant = $1 AND workspace = $2 AND namespace = $3 AND entry_key = $4';
const here = ({ tenant, workspace, namespace, key }: Place) => [tenant, workspace, namespace, key] as const;

export function findEntry(place: Place): Statement {
  return sql(
    `SELECT entry_key, value, version, expires_at - $now AS remaining_ms FROM kv_entries WHERE ${HERE}`,
    ...here(place),
  );
}

/** Replaces the version that was seen, or makes the first one. Whoever was quicker wins. */
export function putEntry(place: Place, value: string, ttlMs: number | null, seen: number | undefined): Write {
  if (seen === undefined) {
    return {
      sql: `INSERT INTO kv_entries (tenant, workspace, namespace, entry_key, value, version, expires_at)
            VALUES ($1, $2, $3, $4, $5, 1, $now + CAST($6 AS BIGINT)) ON CONFLICT DO NOTHING`,
      params: [...here(place), value, ttlMs],
      expect: 1,
      keeps: 'entry',
    };
  }
  return {
    sql: `UPDATE kv_entries SET value = $5, version = version + 1, expires_at = $now + CAST($6 AS BIGINT)
          WHERE ${HERE} AND version = $7`,
    params: [...here(place), value, ttlMs, seen],
    expect: 1,
    keeps: 'entry',
  };
}

/** Changes the value and leaves its end where it is. */
export function changeEntry(place: Place, value: string, seen: number): Write {
  return {
    sql: `UPDATE kv_entries SET value = $5, version = version + 1 WHERE ${HERE} AND version = $6`,
    params: [...here(place), value, seen],
    expect: 1,
    keeps: 'entry',
  };
}

export function dropEntry(place: Place, seen: number): Write {
  return {
    sql: `DELETE FROM kv_entries WHERE ${HERE} AND version = $5`,
    params: [...here(place), seen],
    expect: 1,
    keeps: 'entry',
  };
}

export interface Listing extends Scope {
  readonly namespace: string;
  readonly prefix: string;
  readonly after: string;
  readonly limit: number;
}

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

/** How many entries there are, counted no further than a limit. */
export function countEntries({ tenant, workspace }: Scope, limit: number): Statement {
  return sql(
    `SELECT COUNT(*) AS entries FROM
     (SELECT 1 FROM kv_entries WHERE tenant = $1 AND workspace = $2 LIMIT $3) AS counted`,
    tenant,
    workspace,
    limit,
  );
}

/** Every new entry takes some away whose time is up: there are never many more than were made in a lifetime. */
export function forgetExpired(tenant: string, limit: number): Write {
  return {
    sql: `DELETE FROM kv_entries WHERE (tenant, workspace, namespace, entry_key) IN
          (SELECT tenant, workspace, namespace, entry_key FROM kv_entries
           WHERE tenant = $1 AND expires_at <= $now LIMIT $2)`,
    params: [tenant, limit],
  };
}
