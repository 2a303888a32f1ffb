import type { MissedPolicy } from '../../../protocol/starting/schedules.ts';
import type { Visibility } from '../../../store/log.ts';
import { deleteOwned, findOwned, insertOwned, listOwned, setOwned, updateOwned } from '../../../store/owned-rows.ts';
import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';
import { INPUT_COLUMNS, type InputColumns, type OwnerColumn, type SubjectColumns } from '../starter/self-starting.ts';

export const SCHEDULE_TABLES: readonly Migration[] = [
  {
    id: 'schedules/0001',
    statements: [
      // What runs when, and in whose name. `next_run_at` is null for one that is switched off or over. `last_slot` is
      // the latest slot that was dealt with, and `revision` moves with every change, so that no slot is dealt with twice.
      `CREATE TABLE schedules (
        schedule_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        tenant_name TEXT NOT NULL,
        workspace TEXT,
        principal TEXT NOT NULL,
        issuer TEXT NOT NULL,
        lane TEXT NOT NULL,
        belongs_to TEXT,
        workflow_id TEXT NOT NULL,
        inputs TEXT,
        shown_inputs TEXT,
        cron TEXT,
        run_at BIGINT,
        timezone TEXT NOT NULL,
        missed TEXT NOT NULL,
        revision BIGINT NOT NULL,
        next_run_at BIGINT,
        last_slot BIGINT,
        last_run_at BIGINT,
        last_run_id TEXT,
        last_missed_at BIGINT,
        last_error TEXT,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL
      ) $clustered`,
      'CREATE INDEX schedules_by_tenant ON schedules (tenant, schedule_id)',
      'CREATE INDEX schedules_by_workflow ON schedules (tenant, workflow_id, schedule_id)',
    ],
  },
];

export interface ScheduleRow extends SubjectColumns, InputColumns, OwnerColumn {
  readonly schedule_id: string;
  readonly workflow_id: string;
  readonly cron: string | null;
  readonly run_at: number | null;
  readonly timezone: string;
  readonly missed: MissedPolicy;
  readonly revision: number;
  readonly next_run_at: number | null;
  readonly last_slot: number | null;
  readonly last_run_at: number | null;
  readonly last_run_id: string | null;
  readonly last_missed_at: number | null;
  readonly last_error: string | null;
  readonly created_at: number;
  readonly updated_at: number;
}

const FIXED = ['schedule_id', 'tenant', 'tenant_name', 'workspace', 'belongs_to', 'created_at'] as const;
const WRITTEN = [
  'principal',
  'issuer',
  'lane',
  'workflow_id',
  ...INPUT_COLUMNS,
  'cron',
  'run_at',
  'timezone',
  'missed',
  'next_run_at',
  'updated_at',
] as const;
/** What somebody writes down, as opposed to what comes of it. */
export type WrittenColumns = Pick<ScheduleRow, (typeof WRITTEN)[number]>;

const MOVED = ['next_run_at', 'last_slot', 'last_run_at', 'last_run_id', 'last_missed_at', 'last_error'] as const;

const SCHEDULES = { name: 'schedules', id: 'schedule_id' };

/** Refused when the tenant has too many already. */
export function insertSchedule(row: ScheduleRow, most: number): Write {
  return insertOwned(SCHEDULES, [...FIXED, ...WRITTEN, 'revision'], row, most);
}

/** What somebody wrote anew. Refused when it has changed since it was read, or is gone. */
export function rewriteSchedule(row: ScheduleRow): Write {
  return updateOwned(SCHEDULES, WRITTEN, row);
}

/** What its time brought. Refused when somebody else was there first, or changed it. */
export function moveSchedule(row: ScheduleRow): Write {
  return updateOwned(SCHEDULES, MOVED, row);
}

/** Refused when it has changed since it was read. */
export function lendSchedule(row: ScheduleRow): Write {
  return updateOwned(SCHEDULES, ['belongs_to', 'next_run_at'], row);
}

export function takeBackSchedule(tenant: string, scheduleId: string): Write {
  return setOwned(SCHEDULES, tenant, scheduleId, { belongs_to: null, next_run_at: null });
}

export function deleteSchedule(visibility: Visibility, scheduleId: string): Write {
  return deleteOwned(SCHEDULES, visibility, scheduleId);
}

export function findSchedule(visibility: Visibility, scheduleId: string): Statement {
  return findOwned(SCHEDULES, visibility, scheduleId);
}

export interface ScheduleFilter {
  readonly workflowId?: string | undefined;
  /** Where the page before ended. */
  readonly before?: string | undefined;
}

/** Those that belong to a workflow of a tenant, or of one of its workspaces, by the beginning of their owner's name. */
export function schedulesOf({ tenant, workspace }: Visibility, workflowId: string, owner: string): Statement {
  return sql(
    `SELECT * FROM schedules WHERE tenant = $1 AND workflow_id = $2 AND COALESCE(workspace, '') = $3
     AND SUBSTR(belongs_to, 1, $4) = $5`,
    tenant,
    workflowId,
    workspace ?? '',
    owner.length,
    owner,
  );
}

export function listSchedules(
  visibility: Visibility,
  { workflowId, before }: ScheduleFilter,
  limit: number,
): Statement {
  return listOwned(SCHEDULES, visibility, { workflow_id: workflowId, before }, limit);
}
