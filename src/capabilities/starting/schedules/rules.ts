import { Compile } from 'typebox/compile';
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import { type MissedPolicy, ScheduleRequest, type ScheduleSpec } from '../../../protocol/starting/schedules.ts';
import { misfitsOf } from '../../../runtime/catalog.ts';
import { cronProblem, isTimeZone, latestSlot, nextSlot, type Timing } from './slots.ts';

/** A slot that nobody got to for longer than this was missed: the hosts were down, not busy. */
export const GRACE_MS = 60_000;

const HORIZON_DAYS = 3_660;
const HORIZON_MS = HORIZON_DAYS * 24 * 60 * 60 * 1_000;

/** The furthest that a slot may lie ahead, as an ISO 8601 duration. */
export const HORIZON = `P${HORIZON_DAYS}D`;

export const DEFAULT_TIMEZONE = 'UTC';
export const DEFAULT_MISSED: MissedPolicy = 'skip';

/** When a schedule is due by what somebody wrote down, or what is wrong with that. */
export function timingOf({ cron, runAt, timezone = DEFAULT_TIMEZONE }: ScheduleSpec): Timing | Refusal {
  if (!isTimeZone(timezone)) {
    return misfit(
      'timezone',
      `timezone ${JSON.stringify(timezone)} is not known. Use an IANA name like Europe/Berlin.`,
    );
  }
  if ((cron === undefined) === (runAt === undefined)) {
    return misfit('cron', 'A schedule has either cron or runAt.');
  }
  if (runAt !== undefined) {
    const time = Date.parse(runAt);
    return Number.isNaN(time) ? misfit('runAt', 'runAt is no time that there is.') : { runAt: time };
  }
  const problem = cronProblem(cron!);
  return problem === undefined ? { cron: cron!, timezone } : misfit('cron', `cron ${problem}`);
}

/** The slot that a schedule waits for from now on: none that was dealt with, though one that has only just passed. */
export function firstSlot(timing: Timing, now: number, dealtWith: number | null = null): number | Refusal {
  const isOnce = 'runAt' in timing;
  const slot = nextSlot(timing, Math.max(isOnce ? now - GRACE_MS : now, dealtWith ?? 0));
  if (slot === undefined) {
    return isOnce
      ? misfit('runAt', 'runAt is in the past.')
      : misfit('cron', 'cron describes a time that never comes.');
  }
  if (slot - now <= HORIZON_MS) return slot;
  const message = `That is further ahead than this host looks (${HORIZON}).`;
  return refuse('schedule_horizon_exceeded', message, { field: isOnce ? 'runAt' : 'cron', maxFutureHorizon: HORIZON });
}

/** What a schedule comes to when its time has come. */
export interface Settled {
  /** The latest slot that has passed; those before it are never made up for. */
  readonly slot: number;
  /** Whether that slot gets a run. */
  readonly isDue: boolean;
  readonly next: number | undefined;
}

/** At most one run, however many slots have passed. One that was missed gets it only where the policy says so. */
export function settle(timing: Timing, missed: MissedPolicy, awaited: number, now: number): Settled {
  const following = nextSlot(timing, awaited);
  const isBehind = following !== undefined && following <= now;
  const slot = isBehind ? (latestSlot(timing, now) ?? awaited) : awaited;
  return {
    slot,
    isDue: now - slot <= GRACE_MS || missed === 'once',
    next: isBehind ? nextSlot(timing, now) : following,
  };
}

const requests = Compile(ScheduleRequest);

/** The schedules that a definition asks for, by the ids of its triggers. */
export function triggersOf(definition: WorkflowDefinition): ReadonlyMap<string, ScheduleRequest> | Refusal {
  const wanted = new Map<string, ScheduleRequest>();
  for (const [index, { id, type, config = {}, enabled }] of definition.triggers.entries()) {
    if (type !== 'schedule' || enabled === false) continue;
    const request = { ...config, workflowId: definition.id, enabled: true };
    const [wrong] = misfitsOf(requests, request);
    if (wrong) return misfitAt(`triggers[${index}].config${wrong.path}`, wrong.message);
    const timing = timingOf(request as ScheduleRequest);
    if (isRefusal(timing)) return misfitAt(`triggers[${index}].config.${timing.details!.field}`, timing.message);
    if (wanted.has(id)) return misfitAt(`triggers[${index}].id`, 'is the id of another schedule, too');
    wanted.set(id, request as ScheduleRequest);
  }
  return wanted;
}

function misfitAt(path: string, message: string): Refusal {
  return { ...refuse('validation_error', `${path}: ${message}`, { fields: [{ path, message }] }), status: 422 };
}

function misfit(field: string, message: string): Refusal {
  return refuse('validation_error', message, { field });
}
