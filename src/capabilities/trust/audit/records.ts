import {
  insertNew,
  type NewRows,
  type Param,
  placeholders,
  type Statement,
  sql,
  type Write,
} from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';
import { appendOnly, refuseReplacement } from './append-only-records.ts';

/** The tables of the audit log. Entries and checkpoints are append-only. */
export const AUDIT_TABLES: readonly Migration[] = [
  {
    id: 'audit/0001',
    statements: [
      // Records that are not in a chain yet, written in the transaction of the action itself.
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
      // The last entry of each chain, and since when entries wait for a checkpoint.
      `CREATE TABLE audit_heads (
        tenant TEXT PRIMARY KEY,
        sequence BIGINT NOT NULL,
        hash TEXT NOT NULL,
        checkpoint_sequence BIGINT NOT NULL,
        tail_since BIGINT
      ) $clustered`,
      'CREATE INDEX audit_tails ON audit_heads (tail_since) WHERE tail_since IS NOT NULL',
      // The chains. Every column is part of the hash.
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
      'CREATE INDEX audit_by_time ON audit_entries (tenant, at, sequence)',
      'CREATE INDEX audit_by_action ON audit_entries (tenant, action, at, sequence)',
      'CREATE INDEX audit_by_actor ON audit_entries (tenant, actor, at, sequence)',
      `CREATE INDEX audit_by_workspace ON audit_entries (tenant, workspace, at, sequence)
       WHERE workspace IS NOT NULL`,
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
      // Keys that sign checkpoints and nothing else. The newest signs; the others verify what they signed.
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
      ...appendOnly({ name: 'audit_entries', key: ['tenant', 'sequence'] }),
      ...appendOnly({ name: 'audit_checkpoints', key: ['tenant', 'at_sequence'] }),
    ],
  },
  {
    id: 'audit/0002',
    statements: [
      // The signature of the key before, and the MAC of the row under the host's secret.
      'ALTER TABLE audit_keys ADD COLUMN endorsed_by TEXT',
      'ALTER TABLE audit_keys ADD COLUMN endorsement TEXT',
      'ALTER TABLE audit_keys ADD COLUMN mac TEXT',
      // Checkpoints that are not in every anchor yet.
      `CREATE TABLE audit_unanchored (
        tenant TEXT NOT NULL,
        at_sequence BIGINT NOT NULL,
        PRIMARY KEY (tenant, at_sequence)
      ) $clustered`,
    ],
  },
  {
    id: 'audit/0003',
    statements: [
      // Pending records in the order in which they came: by tenant, runs of many tenants wrote to as many pages.
      {
        sqlite: `CREATE TABLE audit_pending_in_order (
          pending_id TEXT PRIMARY KEY,
          tenant TEXT NOT NULL,
          workspace TEXT,
          at BIGINT NOT NULL,
          actor TEXT NOT NULL,
          action TEXT NOT NULL,
          target TEXT,
          outcome TEXT NOT NULL,
          details TEXT
        ) $clustered`,
      },
      {
        sqlite: `INSERT INTO audit_pending_in_order
                 SELECT pending_id, tenant, workspace, at, actor, action, target, outcome, details FROM audit_pending`,
      },
      { sqlite: 'DROP TABLE audit_pending' },
      { sqlite: 'ALTER TABLE audit_pending_in_order RENAME TO audit_pending' },
      { postgres: 'ALTER TABLE audit_pending DROP CONSTRAINT audit_pending_pkey, ADD PRIMARY KEY (pending_id)' },
    ],
  },
  {
    id: 'audit/0004',
    statements: [
      // With RAISE(ABORT), SQLite copies each page that the statement changes, to undo it alone. RAISE(FAIL) needs no
      // copies: the rows that the statement has inserted before are undone with its unit.
      { sqlite: 'DROP TRIGGER audit_entries_no_replace' },
      refuseReplacement({ name: 'audit_entries', key: ['tenant', 'sequence'] }, 'FAIL'),
    ],
  },
];

/** What a record and an entry have in common. `details` is JSON text. */
interface RecordRow {
  readonly tenant: string;
  readonly workspace: string | null;
  readonly at: number;
  readonly actor: string;
  readonly action: string;
  readonly target: string | null;
  readonly outcome: string;
  readonly details: string | null;
}

/** A record that is not in a chain yet. */
export interface PendingRow extends RecordRow {
  readonly pending_id: string;
}

/** An entry of a chain. */
export interface EntryRow extends RecordRow {
  readonly sequence: number;
  readonly prev_hash: string | null;
  readonly hash: string;
}

/** The columns of a record. */
const RECORD_COLUMNS = 'tenant, workspace, at, actor, action, target, outcome, details';

/** Their values, in the same order. */
function recordParams({ tenant, workspace, at, actor, action, target, outcome, details }: RecordRow): Param[] {
  return [tenant, workspace, at, actor, action, target, outcome, details];
}

const INTO_PENDING: NewRows = {
  insert: `INSERT INTO audit_pending (${RECORD_COLUMNS}, pending_id)`,
  columns: 9,
};

/** Stores a record that the sealer will move into the chain. */
export function insertPending(row: PendingRow): Write {
  return insertNew(INTO_PENDING, [...recordParams(row), row.pending_id]);
}

/** The oldest pending records of a tenant, which are looked for among those of about a second, or of all tenants. */
export function readPending(tenant: string | undefined, limit: number): Statement {
  if (tenant === undefined) return sql('SELECT * FROM audit_pending ORDER BY pending_id LIMIT $1', limit);
  return sql('SELECT * FROM audit_pending WHERE tenant = $1 ORDER BY pending_id LIMIT $2', tenant, limit);
}

/** Rows per statement: few sizes, so that few statements are prepared. */
const SIZES: readonly number[] = [50, 20, 10, 5, 2, 1];

const REMOVE_PENDING = new Map(
  SIZES.map((size) => [
    size,
    `DELETE FROM audit_pending WHERE tenant = $1 AND pending_id IN ${placeholders(1, size, 2)}`,
  ]),
);
const INTO_ENTRIES: NewRows = {
  insert: `INSERT INTO audit_entries (${RECORD_COLUMNS}, sequence, prev_hash, hash)`,
  columns: 11,
};

function chunks<T>(items: readonly T[]): T[][] {
  const parts: T[][] = [];
  for (let start = 0; start < items.length; ) {
    const size = SIZES.find((most) => most <= items.length - start)!;
    parts.push(items.slice(start, start + size));
    start += size;
  }
  return parts;
}

/** Removes records that go into the chain; the expectation fails if one of them is there already. */
export function removePending(tenant: string, pendingIds: readonly string[]): Write[] {
  return chunks(pendingIds).map((ids) => ({
    sql: REMOVE_PENDING.get(ids.length)!,
    params: [tenant, ...ids],
    expect: ids.length,
    expectation: HEAD,
  }));
}

/** Appends entries to a chain, whose head guards them in the same unit. */
export function insertEntries(rows: readonly EntryRow[]): Write[] {
  return chunks(rows).map((part) =>
    insertNew(
      INTO_ENTRIES,
      part.flatMap((row) => [...recordParams(row), row.sequence, row.prev_hash, row.hash]),
    ),
  );
}

/** The end of a chain. */
export interface HeadRow {
  readonly tenant: string;
  readonly sequence: number;
  readonly hash: string;
  readonly checkpoint_sequence: number;
  /** The time of the oldest entry that no checkpoint covers. */
  readonly tail_since: number | null;
}

/** The expectation that a chain still ends where it was read; it fails if another host has appended. */
export const HEAD = 'audit-head';

/** The end of a tenant's chain. */
export function readHead(tenant: string): Statement {
  return sql('SELECT * FROM audit_heads WHERE tenant = $1', tenant);
}

/** The highest sequence that the head, the entries or the checkpoints of a log know of: a cut-off end shows. */
export function furthest(tenant: string): Statement {
  return sql(
    `SELECT MAX(sequence) AS sequence FROM (
       SELECT sequence FROM audit_heads WHERE tenant = $1
       UNION ALL SELECT MAX(sequence) FROM audit_entries WHERE tenant = $1
       UNION ALL SELECT MAX(at_sequence) FROM audit_checkpoints WHERE tenant = $1
     ) AS known`,
    tenant,
  );
}

/** Ends of chains, in the order of their tenants. */
export function listHeads(after: string, limit: number): Statement {
  return sql('SELECT * FROM audit_heads WHERE tenant > $1 ORDER BY tenant LIMIT $2', after, limit);
}

/** Chains with entries that have waited for a checkpoint since before that time. */
export function listTails(before: number, limit: number): Statement {
  return sql('SELECT * FROM audit_heads WHERE tail_since <= $1 ORDER BY tail_since LIMIT $2', before, limit);
}

/** Since when the oldest entry without a checkpoint waits. */
export function oldestTail(): Statement {
  return sql('SELECT MIN(tail_since) AS since FROM audit_heads WHERE tail_since IS NOT NULL');
}

/** Compare-and-swap of the end of a chain: of several writers that read the same end, one succeeds. */
export function moveHead(before: HeadRow | undefined, after: HeadRow): Write {
  const { tenant, sequence, hash, checkpoint_sequence, tail_since } = after;
  const params = [tenant, sequence, hash, checkpoint_sequence, tail_since];
  if (!before) {
    return {
      sql: `INSERT INTO audit_heads (tenant, sequence, hash, checkpoint_sequence, tail_since)
            VALUES ($1, $2, $3, $4, $5) ON CONFLICT (tenant) DO NOTHING`,
      params,
      expect: 1,
      expectation: HEAD,
    };
  }
  return {
    sql: `UPDATE audit_heads SET sequence = $2, hash = $3, checkpoint_sequence = $4, tail_since = $5
          WHERE tenant = $1 AND sequence = $6 AND checkpoint_sequence = $7`,
    params: [...params, before.sequence, before.checkpoint_sequence],
    expect: 1,
    expectation: HEAD,
  };
}

/** Sequences, both ends included. */
export interface SequenceRange {
  readonly from: number;
  readonly to: number;
}

/** Entries in the order of the chain. */
export function readEntries(tenant: string, { from, to }: SequenceRange, limit: number): Statement {
  return sql(
    'SELECT * FROM audit_entries WHERE tenant = $1 AND sequence >= $2 AND sequence <= $3 ORDER BY sequence LIMIT $4',
    tenant,
    from,
    to,
    limit,
  );
}

/** Hashes in the order of the chain. */
export function readHashes(tenant: string, { from, to }: SequenceRange): Statement {
  return sql(
    'SELECT hash FROM audit_entries WHERE tenant = $1 AND sequence >= $2 AND sequence <= $3 ORDER BY sequence',
    tenant,
    from,
    to,
  );
}

/** Which entries a list shows. */
export interface EntryFilter {
  readonly workspace?: string | undefined;
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  /** Only entries that come after this position in the list, which is newest first. */
  readonly before?: EntryPosition | undefined;
}

/** A position in the list: by time, and at the same time by sequence. */
export interface EntryPosition {
  readonly at: number;
  readonly sequence: number;
}

/** Entries, newest first. */
export function listEntries(tenant: string, filter: EntryFilter, limit: number): Statement {
  const params: Param[] = [tenant];
  const where = ['tenant = $1'];
  const add = (condition: string, value: Param | undefined): void => {
    if (value !== undefined) where.push(`${condition} $${params.push(value)}`);
  };
  add('workspace =', filter.workspace);
  add('actor =', filter.actor);
  add('action =', filter.action);
  add('at >=', filter.since);
  add('at <=', filter.until);
  if (filter.before) {
    const at = `$${params.push(filter.before.at)}`;
    where.push(`at <= ${at} AND (at < ${at} OR sequence < $${params.push(filter.before.sequence)})`);
  }
  const limited = `$${params.push(limit)}`;
  return {
    sql: `SELECT * FROM audit_entries WHERE ${where.join(' AND ')} ORDER BY at DESC, sequence DESC LIMIT ${limited}`,
    params,
  };
}

/** A signed checkpoint over a part of a chain. */
export interface CheckpointRow {
  readonly tenant: string;
  readonly at_sequence: number;
  readonly checkpoint_id: string;
  readonly merkle_root: string;
  readonly signature: string;
  readonly key_id: string;
  readonly signed_at: number;
}

/** Stores a checkpoint. */
export function insertCheckpoint(row: CheckpointRow): Write {
  return {
    sql: `INSERT INTO audit_checkpoints (tenant, at_sequence, checkpoint_id, merkle_root, signature, key_id, signed_at)
          VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    params: [row.tenant, row.at_sequence, row.checkpoint_id, row.merkle_root, row.signature, row.key_id, row.signed_at],
  };
}

/** Checkpoints in the order of the chain. */
export function readCheckpoints(tenant: string, { from, to }: SequenceRange, limit: number): Statement {
  return sql(
    `SELECT * FROM audit_checkpoints WHERE tenant = $1 AND at_sequence >= $2 AND at_sequence <= $3
     ORDER BY at_sequence LIMIT $4`,
    tenant,
    from,
    to,
    limit,
  );
}

/** The sequences of the last checkpoint before an entry, and of the first one at or after it. */
export function checkpointsAround(tenant: string, sequence: number): Statement {
  return sql(
    `SELECT (SELECT MAX(at_sequence) FROM audit_checkpoints WHERE tenant = $1 AND at_sequence < $2) AS before,
            (SELECT MIN(at_sequence) FROM audit_checkpoints WHERE tenant = $1 AND at_sequence >= $2) AS after`,
    tenant,
    sequence,
  );
}

/** Notes that a checkpoint has to be copied to the anchors. */
export function insertUnanchored({ tenant, at_sequence }: CheckpointRow): Write {
  return { sql: 'INSERT INTO audit_unanchored (tenant, at_sequence) VALUES ($1, $2)', params: [tenant, at_sequence] };
}

/** Checkpoints that have to be copied to the anchors. */
export function readUnanchored(limit: number): Statement {
  return sql(
    `SELECT c.* FROM audit_unanchored u JOIN audit_checkpoints c
       ON c.tenant = u.tenant AND c.at_sequence = u.at_sequence
     ORDER BY u.tenant, u.at_sequence LIMIT $1`,
    limit,
  );
}

/** Notes that a checkpoint is in every anchor. */
export function removeUnanchored({ tenant, at_sequence }: CheckpointRow): Write {
  return { sql: 'DELETE FROM audit_unanchored WHERE tenant = $1 AND at_sequence = $2', params: [tenant, at_sequence] };
}
