import type { Role, Scope } from '../../protocol/scopes.ts';
import { type Statement, sql, type Write } from '../../store/sql.ts';
import type { Migration } from '../../store/store.ts';
import type { KeyRecord } from './keys.ts';

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
];

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
  readonly revoked_at: number | null;
}

export function findKey(hash: string): Statement {
  return sql('SELECT * FROM api_keys WHERE hash = $1', hash);
}

export function countKeys(): Statement {
  return sql('SELECT COUNT(*) AS count FROM api_keys');
}

export function insertKey(row: KeyRow): Write {
  return {
    sql: `INSERT INTO api_keys (key_id, hash, name, prefix, tenant, workspace, principal, role, scopes, is_test,
            created_at, expires_at, revoked_at)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
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
    ],
  };
}

export function keyFromRow(row: KeyRow): KeyRecord {
  return {
    keyId: row.key_id,
    hash: row.hash,
    tenant: row.tenant,
    workspace: row.workspace ?? undefined,
    principal: row.principal,
    role: (row.role as Role | null) ?? undefined,
    scopes: JSON.parse(row.scopes) as Scope[],
    isTest: row.is_test === 1,
    expiresAt: row.expires_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
  };
}
