import type { MissedPolicy } from '../../../protocol/starting/schedules.ts';
import type { Visibility } from '../../../store/log.ts';
import { workflowsOfOwner } from '../../../store/owned-rows.ts';
import { type Statement, sql } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';
import { HOST_IDENTITY } from '../../host-caller.ts';
import { STARTER_COLUMNS, type StarterColumns, type StarterTable } from '../starter/records.ts';

/** The tables of schedules. */
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

/** A schedule as it is stored. */
export interface ScheduleRow extends StarterColumns {
  readonly schedule_id: string;
  readonly workflow_id: string;
  readonly cron: string | null;
  readonly run_at: number | null;
  readonly timezone: string;
  readonly missed: MissedPolicy;
  readonly next_run_at: number | null;
  readonly last_slot: number | null;
  readonly last_run_at: number | null;
  readonly last_run_id: string | null;
  readonly last_missed_at: number | null;
  readonly last_error: string | null;
  readonly updated_at: number;
}

/** The table of schedules, for the statements that all starters share. */
export const SCHEDULES: StarterTable<ScheduleRow> = {
  name: 'schedules',
  id: 'schedule_id',
  columns: [
    'schedule_id',
    ...STARTER_COLUMNS,
    'workflow_id',
    'cron',
    'run_at',
    'timezone',
    'missed',
    'next_run_at',
    'last_slot',
    'last_run_at',
    'last_run_id',
    'last_missed_at',
    'last_error',
    'updated_at',
  ],
};

/** Schedules of a workflow, in a tenant or one of its workspaces, whose owner's name begins with `owner`. */
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

/** The workflows whose schedules belong to the host itself, as ServedWorkflows. */
export const SCHEDULED_BY_HOST: Statement = workflowsOfOwner(SCHEDULES, HOST_IDENTITY);
