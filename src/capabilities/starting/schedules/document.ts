import { defined } from '../../../protocol/format/json.ts';
import type { Schedule } from '../../../protocol/starting/schedules.ts';
import { timestamp, timestampIfSet } from '../../timestamps.ts';
import { inputsMember, ownerMembers } from '../starter/document.ts';
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
    ...inputsMember(row),
    ...(row.cron === null ? { runAt: timestamp(row.run_at!) } : { cron: row.cron }),
    timezone: row.timezone,
    missed: row.missed,
    enabled: row.next_run_at !== null,
    ...defined({
      nextRunAt: timestampIfSet(row.next_run_at),
      lastRunAt: timestampIfSet(row.last_run_at),
      lastRunId: row.last_run_id ?? undefined,
      lastMissedAt: timestampIfSet(row.last_missed_at),
      lastError: row.last_error === null ? undefined : JSON.parse(row.last_error),
    }),
    ...ownerMembers(row),
    updatedAt: timestamp(row.updated_at),
  };
}
