import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import { canonicalJson } from '../../../protocol/format/json.ts';
import type { Schedule, ScheduleRequest } from '../../../protocol/starting/schedules.ts';
import type { Clock } from '../../../system/clock.ts';
import { timestamp } from '../../timestamps.ts';
import type { Evaluation, StarterFamily, StartOutcome } from '../starter/family.ts';
import { inputsOf } from '../starter/run-creation.ts';
import { scheduleFrom, timingOfRow } from './document.ts';
import type { ScheduleFilter } from './door.ts';
import { SCHEDULES, type ScheduleRow } from './records.ts';
import { DEFAULT_MISSED, DEFAULT_TIMEZONE, decideSlot, firstSlot, timingOf } from './rules.ts';
import type { Timing } from './slots.ts';

/** The kind of the work item that waits for the next slot of a schedule. */
export const SCHEDULE_WORK = 'schedule';
const SCHEDULES_MAX = 10_000;

/** Starters whose condition is a clock: they are due at each slot of their timing. */
export function scheduleFamily(clock: Clock): StarterFamily<ScheduleRow, ScheduleRequest, Schedule, ScheduleFilter> {
  return {
    kind: SCHEDULE_WORK,
    idPrefix: 'sch-',
    limit: SCHEDULES_MAX,
    table: SCHEDULES,
    auditActions: {
      create: 'schedule.create',
      remove: 'schedule.remove',
      enable: 'schedule.replace',
      disable: 'schedule.replace',
    },
    lentColumns: {},

    check: () => undefined,
    newRow: (request, { id, now, columns }) => {
      const requested = requestColumns(request, undefined, now);
      if (isRefusal(requested)) return requested;
      return {
        ...columns,
        schedule_id: id,
        ...requested,
        last_slot: null,
        last_run_at: null,
        last_run_id: null,
        last_missed_at: null,
        last_error: null,
      };
    },
    document: scheduleFrom,
    listColumns: ({ workflowId, before }) => ({ workflow_id: workflowId, before }),
    auditDetails: (_request, { workflow_id: workflowId, cron, run_at, timezone, next_run_at }) => ({
      workflowId,
      timezone,
      ...(cron === null ? { runAt: timestamp(run_at!) } : { cron }),
      enabled: next_run_at !== null,
    }),

    idOf: ({ schedule_id }) => schedule_id,
    // A schedule whose last slot has passed can be given another timing, so it counts as disabled.
    status: ({ next_run_at: dueAt }) => ({ state: dueAt === null ? 'disabled' : 'armed', dueAt }),
    statusColumns: ({ dueAt }) => ({ next_run_at: dueAt }),
    firstDue: (row, now) => firstSlot(timingOfRow(row), now, row.last_slot),

    evaluate: async (row, dueAt) => evaluate(row, dueAt, clock.now()),
    plannedRun: async (row, { at }) => ({
      workflowId: row.workflow_id,
      inputs: inputsOf(row),
      tags: [`schedule:${row.schedule_id}`],
      metadata: { scheduleId: row.schedule_id, scheduledFor: timestamp(at) },
    }),
  };
}

function evaluate(row: ScheduleRow, dueAt: number, now: number): Evaluation<ScheduleRow> {
  const { slot, isDue, next = 'finish' } = decideSlot(timingOfRow(row), row.missed, dueAt, now);
  const outcomeColumns = (outcome: StartOutcome): Partial<ScheduleRow> => {
    if (!outcome) return { last_missed_at: slot };
    if (!isRefusal(outcome)) return { last_run_at: outcome.createdAt, last_run_id: outcome.runId, last_error: null };
    const { refused: code, message } = outcome;
    return { last_error: JSON.stringify({ code, message, at: timestamp(now) }) };
  };
  return {
    occasion: isDue ? { at: slot } : undefined,
    settle: (outcome) => ({ columns: { last_slot: slot, ...outcomeColumns(outcome) }, next }),
  };
}

/** The columns that a request decides. */
type RequestColumns = Pick<
  ScheduleRow,
  'workflow_id' | 'cron' | 'run_at' | 'timezone' | 'missed' | 'next_run_at' | 'updated_at'
>;

/** The columns of a new schedule, or of a known one that the request replaces. */
export function requestColumns(
  request: ScheduleRequest,
  known: ScheduleRow | undefined,
  now: number,
): RequestColumns | Refusal {
  const { workflowId, timezone = DEFAULT_TIMEZONE, missed = DEFAULT_MISSED, enabled } = request;
  const timing = timingOf(request);
  if (isRefusal(timing)) return timing;
  const isEnabled = enabled ?? (known === undefined || known.next_run_at !== null);
  const next = isEnabled ? nextFor(timing, known, now) : null;
  if (isRefusal(next)) return next;
  return {
    workflow_id: workflowId,
    cron: 'cron' in timing ? timing.cron : null,
    run_at: 'runAt' in timing ? timing.runAt : null,
    timezone,
    missed,
    next_run_at: next,
    updated_at: now,
  };
}

/** Whether a timing is the one that a schedule has. */
export function hasTiming(row: ScheduleRow, timing: Timing): boolean {
  return canonicalJson(timing) === canonicalJson(timingOfRow(row));
}

/** A slot that is waited for stays so unless the timing changes. */
function nextFor(timing: Timing, known: ScheduleRow | undefined, now: number): number | Refusal {
  if (known?.next_run_at != null && hasTiming(known, timing)) return known.next_run_at;
  return firstSlot(timing, now, known?.last_slot);
}
