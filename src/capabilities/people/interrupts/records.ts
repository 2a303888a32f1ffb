import type { RunRef } from '../../../store/log.ts';
import { type Param, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

/** Interrupts of all runs, and the keys that sign their tokens. */
export const INTERRUPT_TABLES: readonly Migration[] = [
  {
    id: 'interrupts/0001',
    statements: [
      // A projection of the event logs, so that interrupts can be found without folding every run.
      `CREATE TABLE interrupts (
        interrupt_id TEXT NOT NULL,
        tenant TEXT NOT NULL,
        workspace TEXT,
        run_id TEXT NOT NULL,
        node_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        title TEXT NOT NULL,
        is_gate BIGINT NOT NULL,
        required_scope TEXT,
        artifact_hash TEXT,
        requested_at BIGINT NOT NULL,
        expires_at BIGINT,
        state TEXT NOT NULL,
        PRIMARY KEY (run_id, interrupt_id)
      ) $clustered`,
      `CREATE INDEX interrupts_open ON interrupts (tenant, requested_at, interrupt_id) WHERE state = 'open'`,
      // Keys that sign tokens. The newest signs; all of them verify until they are deleted.
      `CREATE TABLE token_keys (
        key_id TEXT PRIMARY KEY,
        secret TEXT NOT NULL,
        created_at BIGINT NOT NULL
      ) $clustered`,
    ],
  },
  // What is asked, in one line; rows from before have none.
  { id: 'interrupts/0002', statements: ['ALTER TABLE interrupts ADD COLUMN about TEXT'] },
];

/** `gone`: the node ended in another way, such as a cancelled run. */
export type InterruptState = 'open' | 'resolved' | 'expired' | 'gone';

/** A row of the table of interrupts. */
export interface InterruptRow {
  readonly interrupt_id: string;
  readonly tenant: string;
  readonly workspace: string | null;
  readonly run_id: string;
  readonly node_id: string;
  readonly kind: string;
  readonly title: string;
  /** What is asked, beyond the title. */
  readonly about: string | null;
  readonly is_gate: number;
  readonly required_scope: string | null;
  readonly artifact_hash: string | null;
  readonly requested_at: number;
  readonly expires_at: number | null;
  readonly state: InterruptState;
}

/** Adds an open interrupt. */
export function insertInterrupt(row: InterruptRow): Write {
  return {
    sql: `INSERT INTO interrupts (interrupt_id, tenant, workspace, run_id, node_id, kind, title, is_gate, required_scope,
            artifact_hash, requested_at, expires_at, state, about)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
    params: [
      row.interrupt_id,
      row.tenant,
      row.workspace,
      row.run_id,
      row.node_id,
      row.kind,
      row.title,
      row.is_gate,
      row.required_scope,
      row.artifact_hash,
      row.requested_at,
      row.expires_at,
      row.state,
      row.about,
    ],
  };
}

/** Closes the open interrupt of a node, if it has one. */
export function closeInterrupt(tenant: string, runId: string, nodeId: string, state: InterruptState): Write {
  return {
    sql: `UPDATE interrupts SET state = $1 WHERE run_id = $2 AND node_id = $3 AND tenant = $4 AND state = 'open'`,
    params: [state, runId, nodeId, tenant],
  };
}

/** Deletes the interrupts of a run. Rows are found by run, because a fork has interrupts with the ids of its source. */
export function forgetInterrupts({ tenant, runId }: RunRef): Write {
  return { sql: 'DELETE FROM interrupts WHERE run_id = $1 AND tenant = $2', params: [runId, tenant] };
}

/** One interrupt of a run, in any state. */
export function findInterrupt(runId: string, interruptId: string): Statement {
  return sql('SELECT * FROM interrupts WHERE run_id = $1 AND interrupt_id = $2', runId, interruptId);
}

/** The open interrupt of a node. */
export function findOpenInterrupt(tenant: string, runId: string, nodeId: string): Statement {
  return sql(
    `SELECT * FROM interrupts WHERE run_id = $1 AND node_id = $2 AND tenant = $3 AND state = 'open'`,
    runId,
    nodeId,
    tenant,
  );
}

/** The open interrupts of all tenants. */
export interface OpenInterrupts {
  readonly count: number;
  /** When the oldest of them was asked; null if there is none. */
  readonly oldest: number | null;
}

/** Counts the open interrupts of all tenants up to `limit`, so that very many cost no more. */
export function countOpen(limit: number): Statement {
  return sql(
    `SELECT COUNT(*) AS count, MIN(requested_at) AS oldest FROM (
       SELECT requested_at FROM interrupts WHERE state = 'open' LIMIT $1
     ) asked`,
    limit,
  );
}

/** A position in the list of open interrupts. A fork's differ from its source's by run alone: id and time are the same. */
interface OpenPlace {
  readonly at: number;
  readonly id: string;
  readonly runId: string;
}

/** Open interrupts before a position, newest first. */
export function listOpen(
  tenant: string,
  workspace: string | undefined,
  before: OpenPlace | undefined,
  limit: number,
): Statement {
  const params: Param[] = [tenant];
  const where = ['tenant = $1', `state = 'open'`];
  if (workspace !== undefined) where.push(`workspace = $${params.push(workspace)}`);
  if (before) {
    const place = [before.at, before.id, before.runId].map((part) => `$${params.push(part)}`);
    where.push(`(requested_at, interrupt_id, run_id) < (${place.join(', ')})`);
  }
  const limited = `$${params.push(limit)}`;
  return {
    sql: `SELECT * FROM interrupts WHERE ${where.join(' AND ')}
          ORDER BY requested_at DESC, interrupt_id DESC, run_id DESC LIMIT ${limited}`,
    params,
  };
}

/** A key that signs tokens. */
export interface TokenKeyRow {
  readonly key_id: string;
  readonly secret: string;
  readonly created_at: number;
}

/** All keys, newest first. */
export function listTokenKeys(): Statement {
  return sql('SELECT key_id, secret, created_at FROM token_keys ORDER BY created_at DESC, key_id DESC');
}

/** Adds a key; as the newest it signs from then on. */
export function insertTokenKey({ key_id, secret, created_at }: TokenKeyRow): Write {
  return {
    sql: 'INSERT INTO token_keys (key_id, secret, created_at) VALUES ($1, $2, $3)',
    params: [key_id, secret, created_at],
  };
}

/** Deletes keys that are older than that. */
export function retireTokenKeys(createdBefore: number): Write {
  return { sql: 'DELETE FROM token_keys WHERE created_at < $1', params: [createdBefore] };
}
