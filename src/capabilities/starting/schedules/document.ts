import type { Schedule } from '../../../protocol/starting/schedules.ts';
import { ownerFrom } from '../../subject-columns.ts';
import { timestamp } from '../../timestamps.ts';
import type { ScheduleRow } from './records.ts';
import type { Timing } from './slots.ts';

/** When a stored schedule is due. */
export function timingOfRow({ cron, run_at, timezone }: ScheduleRow): Timing {
  return cron === null ? { runAt: run_at! } : { cron, timezone };
}

/** A schedule as callers see it. */
export function scheduleFrom(row: ScheduleRow): Schedule {
  return {
    id: row.schedule_id,
    workflowId: row.workflow_id,
    ...(row.shown_inputs === null ? {} : { inputs: JSON.parse(row.shown_inputs) }),
    ...(row.cron === null ? { runAt: timestamp(row.run_at!) } : { cron: row.cron }),
    timezone: row.timezone,
    missed: row.missed,
    enabled: row.next_run_at !== null,
    ...timeMember('nextRunAt', row.next_run_at),
    ...timeMember('lastRunAt', row.last_run_at),
    ...(row.last_run_id === null ? {} : { lastRunId: row.last_run_id }),
    ...timeMember('lastMissedAt', row.last_missed_at),
    ...(row.last_error === null ? {} : { lastError: JSON.parse(row.last_error) }),
    owner: ownerFrom(row),
    ...(row.belongs_to === null ? {} : { belongsTo: row.belongs_to }),
    createdAt: timestamp(row.created_at),
    updatedAt: timestamp(row.updated_at),
  };
}

function timeMember(name: string, at: number | null): Record<string, string> {
  return at === null ? {} : { [name]: timestamp(at) };
}
