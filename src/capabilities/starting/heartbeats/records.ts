import type { Visibility } from '../../../store/log.ts';
import {
  deleteOwned,
  findOwned,
  insertOwned,
  listOwned,
  type OwnedTable,
  setOwned,
  updateOwned,
} from '../../../store/owned-rows.ts';
import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';
import {
  INPUT_COLUMNS,
  type InputColumns,
  type OwnerColumn,
  SUBJECT_COLUMNS,
  type SubjectColumns,
} from '../starter/self-starting.ts';

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

export interface HeartbeatRow extends SubjectColumns, InputColumns, OwnerColumn {
  readonly heartbeat_id: string;
  readonly spec: string;
  readonly revision: number;
  readonly next_tick_at: number | null;
  readonly state: string | null;
  readonly last_tick_at: number | null;
  readonly last_status: string | null;
  readonly last_error: string | null;
  readonly last_changed_at: number | null;
  readonly last_run_id: string | null;
  /** Events so far. */
  readonly told: number;
  readonly created_at: number;
}

const HEARTBEATS: OwnedTable = { name: 'heartbeats', id: 'heartbeat_id' };
const FIXED = [
  'heartbeat_id',
  ...SUBJECT_COLUMNS,
  ...INPUT_COLUMNS,
  'belongs_to',
  'spec',
  'revision',
  'created_at',
] as const;
const MOVED = [
  'next_tick_at',
  'state',
  'last_tick_at',
  'last_status',
  'last_error',
  'last_changed_at',
  'last_run_id',
  'told',
] as const;

/** Refused when the tenant has too many already. */
export function insertHeartbeat(row: HeartbeatRow, most: number): Write {
  return insertOwned(HEARTBEATS, [...FIXED, ...MOVED], row, most);
}

/** What a tick brought. Refused when somebody else was there first. */
export function moveHeartbeat(row: HeartbeatRow): Write {
  return updateOwned(HEARTBEATS, MOVED, row);
}

/** Refused when it has changed since it was read. */
export function turnHeartbeat(row: HeartbeatRow): Write {
  return updateOwned(HEARTBEATS, ['next_tick_at'], row);
}

/** Refused when it has changed since it was read. */
export function lendHeartbeat(row: HeartbeatRow): Write {
  return updateOwned(HEARTBEATS, ['belongs_to', 'next_tick_at', 'state'], row);
}

export function takeBackHeartbeat(tenant: string, heartbeatId: string): Write {
  return setOwned(HEARTBEATS, tenant, heartbeatId, { belongs_to: null, next_tick_at: null });
}

export function deleteHeartbeat(visibility: Visibility, heartbeatId: string): Write[] {
  return [
    deleteOwned(HEARTBEATS, visibility, heartbeatId),
    {
      sql: 'DELETE FROM heartbeat_events WHERE heartbeat_id = $1 AND tenant = $2',
      params: [heartbeatId, visibility.tenant],
    },
  ];
}

export function findHeartbeat(visibility: Visibility, heartbeatId: string): Statement {
  return findOwned(HEARTBEATS, visibility, heartbeatId);
}

export function listHeartbeats(visibility: Visibility, before: string | undefined, limit: number): Statement {
  return listOwned(HEARTBEATS, visibility, { before }, limit);
}

export interface HeartbeatEventRow {
  readonly heartbeat_id: string;
  readonly sequence: number;
  readonly tenant: string;
  readonly at: number;
  readonly type: string;
  readonly payload: string;
}

export function insertHeartbeatEvent(row: HeartbeatEventRow): Write {
  return {
    sql: `INSERT INTO heartbeat_events (heartbeat_id, sequence, tenant, at, type, payload)
          VALUES ($1, $2, $3, $4, $5, $6)`,
    params: [row.heartbeat_id, row.sequence, row.tenant, row.at, row.type, row.payload],
  };
}

export function forgetHeartbeatEvents({ heartbeat_id, tenant }: HeartbeatRow, upTo: number): Write {
  return {
    sql: 'DELETE FROM heartbeat_events WHERE heartbeat_id = $1 AND tenant = $2 AND sequence <= $3',
    params: [heartbeat_id, tenant, upTo],
  };
}

/** Newest first. */
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

/** How many runs that it started have not come to their end. */
export function countLiveRuns(tenant: string, tag: string): Statement {
  return sql(
    `SELECT COUNT(*) AS count FROM run_tags JOIN runs USING (tenant, run_id)
     WHERE tenant = $1 AND tag = $2 AND ended_at IS NULL`,
    tenant,
    JSON.stringify(tag),
  );
}
