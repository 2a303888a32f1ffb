import { Compile } from 'typebox/compile';
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import { once } from '../../../protocol/format/once.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import { type MissedPolicy, type ScheduleRequest, ScheduleSpec } from '../../../protocol/starting/schedules.ts';
import { configProblems } from '../../../runtime/catalog.ts';
import { GRACE_MS, HORIZON, HORIZON_MS, invalidField } from '../starter/rules.ts';
import { cronProblem, isTimeZone, latestSlot, nextSlot, type Timing } from './slots.ts';

/** The time zone of a schedule that names none. */
export const DEFAULT_TIMEZONE = 'UTC';
/** What happens to missed slots unless the schedule says otherwise. */
export const DEFAULT_MISSED: MissedPolicy = 'skip';

/** The timing that a request describes, or what is wrong with it. */
export function timingOf({ cron, runAt, timezone = DEFAULT_TIMEZONE }: ScheduleSpec): Timing | Refusal {
  if (!isTimeZone(timezone)) {
    return invalidField(
      'timezone',
      `timezone ${JSON.stringify(timezone)} is not known. Use an IANA name like Europe/Berlin.`,
    );
  }
  if ((cron === undefined) === (runAt === undefined)) {
    return invalidField('cron', 'A schedule must have either cron or runAt.');
  }
  if (runAt !== undefined) {
    const time = Date.parse(runAt);
    return Number.isNaN(time) ? invalidField('runAt', 'runAt is not a valid time.') : { runAt: time };
  }
  const problem = cronProblem(cron!);
  return problem === undefined ? { cron: cron!, timezone } : invalidField('cron', `cron ${problem}`);
}

/**
 * The slot that a schedule waits for from now on: never one up to `lastSlot`, which had its evaluation. A single run whose
 * time has just passed is still started.
 */
export function firstSlot(timing: Timing, now: number, lastSlot: number | null = null): number | Refusal {
  const isOnce = 'runAt' in timing;
  const slot = nextSlot(timing, Math.max(isOnce ? now - GRACE_MS : now, lastSlot ?? 0));
  if (slot === undefined) {
    return isOnce
      ? invalidField('runAt', 'runAt is in the past.')
      : invalidField('cron', 'cron describes a time that never comes.');
  }
  if (slot - now <= HORIZON_MS) return slot;
  const message = `The first run would be further ahead than this host plans (${HORIZON}).`;
  return refuse('schedule_horizon_exceeded', message, { field: isOnce ? 'runAt' : 'cron', maxFutureHorizon: HORIZON });
}

/** What is decided about a schedule that is due. */
interface SlotDecision {
  /** The latest slot that has passed; earlier ones get no run. */
  readonly slot: number;
  /** Whether that slot gets a run. */
  readonly isDue: boolean;
  readonly next: number | undefined;
}

/** At most one run, however many slots have passed; a missed slot gets it only if the policy says so. */
export function decideSlot(timing: Timing, missed: MissedPolicy, awaited: number, now: number): SlotDecision {
  const following = nextSlot(timing, awaited);
  const isBehind = following !== undefined && following <= now;
  const slot = isBehind ? (latestSlot(timing, now) ?? awaited) : awaited;
  return {
    slot,
    isDue: now - slot <= GRACE_MS || missed === 'once',
    next: isBehind ? nextSlot(timing, now) : following,
  };
}

const { workflowId: _itsOwn, ...timed } = ScheduleSpec.properties;
const TriggerConfig = Closed(timed);
const triggerConfigs = once(() => Compile(TriggerConfig));

/** The schedules that a definition asks for, by the ids of its triggers. */
export function triggersOf(definition: WorkflowDefinition): ReadonlyMap<string, ScheduleRequest> | Refusal {
  const wanted = new Map<string, ScheduleRequest>();
  for (const [index, { id, type, config = {}, enabled }] of definition.triggers.entries()) {
    if (type !== 'schedule' || enabled === false) continue;
    const [wrong] = configProblems(TriggerConfig, triggerConfigs(), config);
    const request = { ...config, workflowId: definition.id, enabled: true };
    if (wrong) return invalidTrigger(`triggers[${index}].config${wrong.path}`, wrong.message);
    const timing = timingOf(request);
    if (isRefusal(timing)) return invalidTrigger(`triggers[${index}].config.${timing.details!.field}`, timing.message);
    if (wanted.has(id)) return invalidTrigger(`triggers[${index}].id`, 'is also the id of another schedule trigger');
    wanted.set(id, request);
  }
  return wanted;
}

function invalidTrigger(path: string, message: string): Refusal {
  return { ...refuse('validation_error', `${path}: ${message}`, { fields: [{ path, message }] }), status: 422 };
}
