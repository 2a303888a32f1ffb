import { type Param, placeholders, type Statement, sql, type Write } from '../../../store/sql.ts';

/** A key that signs checkpoints. `private_key` is empty if the key is held outside the store. */
export interface AuditKeyRow {
  readonly key_id: string;
  readonly private_key: string;
  readonly public_key: string;
  readonly created_at: number;
  readonly endorsed_by: string | null;
  readonly endorsement: string | null;
  readonly mac: string | null;
}

const KEY_COLUMNS = [
  'key_id',
  'private_key',
  'public_key',
  'created_at',
  'endorsed_by',
  'endorsement',
  'mac',
] as const satisfies readonly (keyof AuditKeyRow)[];

/** The signing keys, newest first. */
export function listAuditKeys(): Statement {
  return sql('SELECT * FROM audit_keys ORDER BY created_at DESC, key_id DESC');
}

/** Stores a key unless the name is taken: hosts that start together create one between them. */
export function ensureAuditKey(row: AuditKeyRow): Write {
  return {
    sql: `INSERT INTO audit_keys (${KEY_COLUMNS.join(', ')}) VALUES ${placeholders(1, KEY_COLUMNS.length)}
          ON CONFLICT (key_id) DO NOTHING`,
    params: KEY_COLUMNS.map((column): Param => row[column]),
  };
}
