import { isRole } from '../../../protocol/trust/scopes.ts';
import { lookup, type Param, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';
import { type KeyRecord, scopesOf } from './keys.ts';

/** The table of API keys. */
export const KEY_TABLES: readonly Migration[] = [
  {
    id: 'authorization/0001',
    statements: [
      `CREATE TABLE api_keys (
        key_id TEXT PRIMARY KEY,
        hash TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        prefix TEXT NOT NULL,
        tenant TEXT NOT NULL,
        workspace TEXT,
        principal TEXT NOT NULL,
        role TEXT,
        scopes TEXT NOT NULL,
        is_test BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        expires_at BIGINT,
        revoked_at BIGINT
      ) $clustered`,
    ],
  },
  {
    id: 'authorization/0002',
    statements: [
      'ALTER TABLE api_keys ADD COLUMN last_used_at BIGINT',
      'CREATE INDEX api_keys_by_tenant ON api_keys (tenant, is_test, key_id)',
    ],
  },
  {
    id: 'authorization/0003',
    statements: ['ALTER TABLE api_keys ADD COLUMN person TEXT'],
  },
  {
    id: 'authorization/0004',
    statements: ['ALTER TABLE api_keys ADD COLUMN pool TEXT'],
  },
];

/** A stored key: its hash and rights. */
export interface KeyRow {
  readonly key_id: string;
  readonly hash: string;
  readonly name: string;
  readonly prefix: string;
  readonly tenant: string;
  readonly workspace: string | null;
  readonly principal: string;
  readonly role: string | null;
  readonly scopes: string;
  readonly is_test: number;
  readonly created_at: number;
  readonly expires_at: number | null;
  /** May be in the future: a rotated key stays valid for a grace period. */
  readonly revoked_at: number | null;
  readonly last_used_at: number | null;
  readonly person: string | null;
  readonly pool: string | null;
}

/** A row with the store's time. Clocks of hosts may differ, so the store's clock decides whether a key is over. */
export type TimedKeyRow = KeyRow & { readonly now: number };

/** The keys that a caller may manage: live or test keys of its tenant and, if it is bound to one, of its workspace. */
export interface KeyRealm {
  readonly tenant: string;
  readonly isTest: boolean;
  readonly workspace?: string | undefined;
}

/** A key by its hash, as a TimedKeyRow. */
export function findKey(hash: string): Statement {
  return lookup('SELECT api_keys.*, $now AS now FROM api_keys WHERE hash = $1', hash);
}

/** A key that a caller may manage, as a TimedKeyRow. */
export function findKeyById(realm: KeyRealm, keyId: string): Statement {
  const { where, params } = within(realm);
  return {
    sql: `SELECT api_keys.*, $now AS now FROM api_keys WHERE ${where} AND key_id = $${params.push(keyId)}`,
    params,
  };
}

/** Keys, newest first. */
export function listKeys(realm: KeyRealm, before: string | undefined, limit: number): Statement {
  const { where, params } = within(realm);
  const from = before === undefined ? '' : `AND key_id < $${params.push(before)}`;
  return {
    sql: `SELECT * FROM api_keys WHERE ${where} ${from} ORDER BY key_id DESC LIMIT $${params.push(limit)}`,
    params,
  };
}

/** The number of stored keys of all tenants. */
export function countKeys(): Statement {
  return sql('SELECT COUNT(*) AS count FROM api_keys');
}

/** How many valid keys of a tenant, in whatever workspace, have a principal. */
export function countKeysOf({ tenant, isTest }: KeyRealm, principal: string): Statement {
  return sql(
    `SELECT COUNT(*) AS count FROM api_keys WHERE tenant = $1 AND is_test = $2 AND principal = $3
       AND (revoked_at IS NULL OR revoked_at > $now) AND (expires_at IS NULL OR expires_at > $now)`,
    tenant,
    isTest ? 1 : 0,
    principal,
  );
}

/** Names of a key, by its principal. */
export type NamedKeyRow = Pick<KeyRow, 'principal' | 'name' | 'person'>;

/**
 * Names of keys by principals, newest key last. Whoever is bound to a workspace sees what acts there: keys of the
 * workspace, and those of the whole tenant.
 */
export function listNames({ tenant, isTest, workspace }: KeyRealm, principals: readonly string[]): Statement {
  const params: Param[] = [tenant, isTest ? 1 : 0];
  const bound = workspace === undefined ? '' : `AND (workspace IS NULL OR workspace = $${params.push(workspace)})`;
  const wanted = principals.map((principal) => `$${params.push(principal)}`).join(', ');
  return {
    sql: `SELECT principal, name, person FROM api_keys
          WHERE tenant = $1 AND is_test = $2 ${bound} AND principal IN (${wanted}) ORDER BY key_id`,
    params,
  };
}

/** Stores a new key. */
export function insertKey(row: KeyRow): Write {
  return {
    sql: `INSERT INTO api_keys (key_id, hash, name, prefix, tenant, workspace, principal, role, scopes, is_test,
            created_at, expires_at, revoked_at, last_used_at, person, pool)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
    params: [
      row.key_id,
      row.hash,
      row.name,
      row.prefix,
      row.tenant,
      row.workspace,
      row.principal,
      row.role,
      row.scopes,
      row.is_test,
      row.created_at,
      row.expires_at,
      row.revoked_at,
      row.last_used_at,
      row.person,
      row.pool,
    ],
  };
}

/** Revokes a key after a grace period. The expectation `key` fails if it is revoked or rotated already. */
export function endKeyIn(realm: KeyRealm, keyId: string, graceMs: number): Write {
  const { where, params } = within(realm);
  return {
    sql: `UPDATE api_keys SET revoked_at = $now + $${params.push(graceMs)}
          WHERE ${where} AND key_id = $${params.push(keyId)} AND revoked_at IS NULL`,
    params,
    expect: 1,
    expectation: 'key',
  };
}

/** Revokes a key at once, also during its grace period. The expectation `key` fails if it is revoked already. */
export function revokeKey(realm: KeyRealm, keyId: string): Write {
  const { where, params } = within(realm);
  return {
    sql: `UPDATE api_keys SET revoked_at = $now WHERE ${where} AND key_id = $${params.push(keyId)} AND ${IS_LIVE}`,
    params,
    expect: 1,
    expectation: 'key',
  };
}

const IS_LIVE = '(revoked_at IS NULL OR revoked_at > $now)';

/**
 * Expects another valid key that can manage keys, and locks it: of two managers that revoke each other at the same
 * time, one is refused with `manager`. A rotated key does not count, because it ends with its grace period.
 */
export function keepManager(realm: KeyRealm, { keyId, isOwner }: { keyId: string; isOwner: boolean }): Write {
  const { tenant, isTest, workspace } = realm;
  const params: Param[] = [tenant, isTest ? 1 : 0, keyId];
  const reach = workspace === undefined ? '' : `OR workspace = $${params.push(workspace)}`;
  return {
    sql: `UPDATE api_keys SET tenant = tenant WHERE revoked_at IS NULL AND key_id = (
            SELECT MAX(key_id) FROM api_keys
            WHERE tenant = $1 AND is_test = $2 AND key_id <> $3 AND (workspace IS NULL ${reach})
              AND ${isOwner ? "role = 'owner'" : `scopes LIKE '%"keys:manage"%'`}
              AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $now))`,
    params,
    expect: 1,
    expectation: 'manager',
  };
}

/** Stores the time of use, at most once per period. */
export function touchKey(keyId: string, everyMs: number): Write {
  return {
    sql: `UPDATE api_keys SET last_used_at = $now
          WHERE key_id = $1 AND (last_used_at IS NULL OR last_used_at <= $now - $2)`,
    params: [keyId, everyMs],
  };
}

/** The key of a row. A role stands for the scopes that it has in this version, not in that which created the key. */
export function keyFromRow(row: KeyRow): KeyRecord {
  return {
    keyId: row.key_id,
    hash: row.hash,
    tenant: row.tenant,
    workspace: row.workspace ?? undefined,
    principal: row.principal,
    person: row.person ?? undefined,
    pool: row.pool ?? undefined,
    role: isRole(row.role) ? row.role : undefined,
    scopes: scopesOf(row.role === null ? { scopes: JSON.parse(row.scopes) } : { role: row.role }),
    isTest: row.is_test === 1,
    expiresAt: row.expires_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
  };
}

function within({ tenant, isTest, workspace }: KeyRealm): { where: string; params: Param[] } {
  const params: Param[] = [tenant, isTest ? 1 : 0];
  const bound = workspace === undefined ? '' : ` AND workspace = $${params.push(workspace)}`;
  return { where: `tenant = $1 AND is_test = $2${bound}`, params };
}
