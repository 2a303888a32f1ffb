import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';
import { STARTER_COLUMNS, type StarterColumns, type StarterTable } from '../starter/records.ts';

/** The tables of heartbeats. */
export const HEARTBEAT_TABLES: readonly Migration[] = [
  {
    id: 'heartbeat/0001',
    statements: [
      // What is looked at, how often, and what was seen last. `next_tick_at` is null for one that is off, and `revision`
      // moves with every change, so that no tick happens twice.
      `CREATE TABLE heartbeats (
        heartbeat_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        tenant_name TEXT NOT NULL,
        workspace TEXT,
        principal TEXT NOT NULL,
        issuer TEXT NOT NULL,
        lane TEXT NOT NULL,
        belongs_to TEXT,
        spec TEXT NOT NULL,
        inputs TEXT,
        shown_inputs TEXT,
        revision BIGINT NOT NULL,
        next_tick_at BIGINT,
        state TEXT,
        last_tick_at BIGINT,
        last_status TEXT,
        last_error TEXT,
        last_changed_at BIGINT,
        last_run_id TEXT,
        told BIGINT NOT NULL,
        created_at BIGINT NOT NULL
      ) $clustered`,
      'CREATE INDEX heartbeats_by_tenant ON heartbeats (tenant, heartbeat_id)',
      // What heartbeats said last.
      `CREATE TABLE heartbeat_events (
        heartbeat_id TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        tenant TEXT NOT NULL,
        at BIGINT NOT NULL,
        type TEXT NOT NULL,
        payload TEXT NOT NULL,
        PRIMARY KEY (heartbeat_id, sequence)
      ) $clustered`,
    ],
  },
];

/** A heartbeat as it is stored. */
export interface HeartbeatRow extends StarterColumns {
  readonly heartbeat_id: string;
  /** The request, without its inputs. */
  readonly spec: string;
  readonly next_tick_at: number | null;
  readonly state: string | null;
  readonly last_tick_at: number | null;
  readonly last_status: string | null;
  readonly last_error: string | null;
  readonly last_changed_at: number | null;
  readonly last_run_id: string | null;
  /** The sequence of the last event. */
  readonly told: number;
}

/** The table of heartbeats, for the statements that all starters share. */
export const HEARTBEATS: StarterTable<HeartbeatRow> = {
  name: 'heartbeats',
  id: 'heartbeat_id',
  columns: [
    'heartbeat_id',
    ...STARTER_COLUMNS,
    'spec',
    'next_tick_at',
    'state',
    'last_tick_at',
    'last_status',
    'last_error',
    'last_changed_at',
    'last_run_id',
    'told',
  ],
};

/** Deletes the events of a heartbeat. */
export function deleteHeartbeatEvents(tenant: string, heartbeatId: string): Write {
  return {
    sql: 'DELETE FROM heartbeat_events WHERE heartbeat_id = $1 AND tenant = $2',
    params: [heartbeatId, tenant],
  };
}

/** An event of a heartbeat as it is stored. */
export interface HeartbeatEventRow {
  readonly heartbeat_id: string;
  readonly sequence: number;
  readonly tenant: string;
  readonly at: number;
  readonly type: string;
  readonly payload: string;
}

/** Stores an event. */
export function insertHeartbeatEvent(row: HeartbeatEventRow): Write {
  return {
    sql: `INSERT INTO heartbeat_events (heartbeat_id, sequence, tenant, at, type, payload)
          VALUES ($1, $2, $3, $4, $5, $6)`,
    params: [row.heartbeat_id, row.sequence, row.tenant, row.at, row.type, row.payload],
  };
}

/** Deletes the events up to a sequence. */
export function expireHeartbeatEvents({ heartbeat_id, tenant }: HeartbeatRow, upTo: number): Write {
  return {
    sql: 'DELETE FROM heartbeat_events WHERE heartbeat_id = $1 AND tenant = $2 AND sequence <= $3',
    params: [heartbeat_id, tenant, upTo],
  };
}

/** The latest events before a sequence, newest first. */
export function listHeartbeatEvents(tenant: string, heartbeatId: string, before: number, limit: number): Statement {
  return sql(
    `SELECT * FROM heartbeat_events WHERE heartbeat_id = $1 AND tenant = $2 AND sequence < $3
     ORDER BY sequence DESC LIMIT $4`,
    heartbeatId,
    tenant,
    before,
    limit,
  );
}

/** How many runs with a tag have not ended. */
export function countLiveRuns(tenant: string, tag: string): Statement {
  return sql(
    `SELECT COUNT(*) AS count FROM run_tags JOIN runs USING (tenant, run_id)
     WHERE tenant = $1 AND tag = $2 AND ended_at IS NULL`,
    tenant,
    JSON.stringify(tag),
  );
}
