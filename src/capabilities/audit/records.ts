import { type Param, placeholders, type Write } from '../../store/sql.ts';
import type { Migration } from '../../store/store.ts';

/** What no hand may change or take away, and how each store is told so. */
function appendOnly(table: string, key: readonly string[]): Migration['statements'] {
  const refuse = `SELECT RAISE(ABORT, '${table} is append-only');`;
  const isTaken = key.map((column) => `${column} = NEW.${column}`).join(' AND ');
  return [
    { sqlite: `CREATE TRIGGER ${table}_no_update BEFORE UPDATE ON ${table} BEGIN ${refuse} END` },
    { sqlite: `CREATE TRIGGER ${table}_no_delete BEFORE DELETE ON ${table} BEGIN ${refuse} END` },
    // INSERT OR REPLACE deletes without a word to the trigger above.
    {
      sqlite: `CREATE TRIGGER ${table}_no_replace BEFORE INSERT ON ${table}
               WHEN EXISTS (SELECT 1 FROM ${table} WHERE ${isTaken}) BEGIN ${refuse} END`,
    },
    {
      postgres: `CREATE TRIGGER ${table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ${table}
                 FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only()`,
    },
  ];
}

export const AUDIT_TABLES: readonly Migration[] = [
  {
    id: 'audit/0001',
    statements: [
      // What has happened and is not in a chain yet. Written in the transaction in which it happened.
      `CREATE TABLE audit_pending (
        tenant TEXT NOT NULL,
        pending_id TEXT NOT NULL,
        workspace TEXT,
        at BIGINT NOT NULL,
        actor TEXT NOT NULL,
        action TEXT NOT NULL,
        target TEXT,
        outcome TEXT NOT NULL,
        details TEXT,
        PRIMARY KEY (tenant, pending_id)
      ) $clustered`,
      // Where each chain ends, and since when its end waits for a checkpoint.
      `CREATE TABLE audit_heads (
        tenant TEXT PRIMARY KEY,
        sequence BIGINT NOT NULL,
        hash TEXT NOT NULL,
        checkpoint_sequence BIGINT NOT NULL,
        tail_since BIGINT
      ) $clustered`,
      'CREATE INDEX audit_tails ON audit_heads (tail_since) WHERE tail_since IS NOT NULL',
      // The chains. Every column is in the hash, so that there is none to tamper with.
      `CREATE TABLE audit_entries (
        tenant TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        workspace TEXT,
        at BIGINT NOT NULL,
        actor TEXT NOT NULL,
        action TEXT NOT NULL,
        target TEXT,
        outcome TEXT NOT NULL,
        details TEXT,
        prev_hash TEXT,
        hash TEXT NOT NULL,
        PRIMARY KEY (tenant, sequence)
      ) $clustered`,
      'CREATE INDEX audit_by_action ON audit_entries (tenant, action, sequence)',
      'CREATE INDEX audit_by_actor ON audit_entries (tenant, actor, sequence)',
      'CREATE INDEX audit_by_time ON audit_entries (tenant, at)',
      `CREATE TABLE audit_checkpoints (
        tenant TEXT NOT NULL,
        at_sequence BIGINT NOT NULL,
        checkpoint_id TEXT NOT NULL,
        merkle_root TEXT NOT NULL,
        signature TEXT NOT NULL,
        key_id TEXT NOT NULL,
        signed_at BIGINT NOT NULL,
        PRIMARY KEY (tenant, at_sequence)
      ) $clustered`,
      // Keys that sign checkpoints and nothing else. The newest signs; the others are kept for what they signed.
      `CREATE TABLE audit_keys (
        key_id TEXT PRIMARY KEY,
        private_key TEXT NOT NULL,
        public_key TEXT NOT NULL,
        created_at BIGINT NOT NULL
      ) $clustered`,
      {
        postgres: `CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS
                   $$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$`,
      },
      ...appendOnly('audit_entries', ['tenant', 'sequence']),
      ...appendOnly('audit_checkpoints', ['tenant', 'at_sequence']),
    ],
  },
];

/** Something that has happened, as it is kept. `details` is JSON text. */
export interface PendingRow {
  readonly tenant: string;
  readonly pending_id: string;
  readonly workspace: string | null;
  readonly at: number;
  readonly actor: string;
  readonly action: string;
  readonly target: string | null;
  readonly outcome: string;
  readonly details: string | null;
}

const PENDING_COLUMNS = [
  'tenant',
  'pending_id',
  'workspace',
  'at',
  'actor',
  'action',
  'target',
  'outcome',
  'details',
] as const satisfies readonly (keyof PendingRow)[];

const INSERT_PENDING = `INSERT INTO audit_pending (${PENDING_COLUMNS.join(', ')})
  VALUES ${placeholders(1, PENDING_COLUMNS.length)}`;

export function insertPending(row: PendingRow): Write {
  return { sql: INSERT_PENDING, params: PENDING_COLUMNS.map((column): Param => row[column]) };
}
