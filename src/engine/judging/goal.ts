import { type Refusal, refuse } from '../../protocol/errors.ts';
import type { GoalBounds, GoalState } from '../../protocol/learning/goals.ts';
import { addUsd } from '../models/budget.ts';

/**
 * The state of a goal that decides what happens next. All functions in this file are pure.
 *
 * G1. Only a verdict satisfies a goal.
 * G2. A goal starts no more runs than its bound allows, and none after it has stopped.
 * G3. A closed goal never changes, whatever arrives late.
 */
export interface GoalProgress {
  readonly state: GoalState;
  readonly isPaused: boolean;
  readonly bounds: GoalBounds;
  /** Epoch milliseconds. */
  readonly deadlineAt?: number | undefined;
  /** Contributing runs started so far. */
  readonly started: number;
  /** Contributing runs judged so far. */
  readonly iterations: number;
  readonly costUsd: number;
  /** Keys of the criteria that the last verdict found unmet, sorted. */
  readonly open: readonly string[];
  /** Number of consecutive verdicts with exactly these unmet criteria. */
  readonly standstill: number;
}

/** The latest time that a timestamp on the wire can name: years have four digits there. */
const TIME_MAX = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** The state of a goal that was just created. */
export function newProgress(bounds: GoalBounds, createdAt: number): GoalProgress {
  const { runTimeoutMs } = bounds;
  return {
    state: 'active',
    isPaused: false,
    bounds,
    deadlineAt: runTimeoutMs === undefined ? undefined : Math.min(createdAt + runTimeoutMs, TIME_MAX),
    started: 0,
    iterations: 0,
    costUsd: 0,
    open: [],
    standstill: 0,
  };
}

/** Whether a goal has ended for good. An escalated goal has not: it waits for a person. */
export function isClosed({ state }: Pick<GoalProgress, 'state'>): boolean {
  return state !== 'active' && state !== 'escalated';
}

/** Whether a transition stops the goal, or closes one that an escalation had stopped: each is told as `goal.closed`. */
export function hasStopped(before: GoalProgress, after: GoalProgress): boolean {
  return after.state !== 'active' && after.state !== before.state;
}

/** Counts one more contributing run, or refuses it. `atOnce` limits the runs that have not been judged yet. */
export function startRun(goal: GoalProgress, now: number, atOnce: number): GoalProgress | Refusal {
  const { state, isPaused, bounds, deadlineAt, started, iterations } = goal;
  if (state !== 'active') return noRun(state, 'stopped', `The goal is ${state}.`);
  if (isPaused) return noRun(state, 'paused', 'The goal is paused.');
  if (started >= (bounds.maxLoopIterations ?? Number.POSITIVE_INFINITY)) {
    return noRun(state, 'maxLoopIterations', 'The goal has reached its maxLoopIterations.');
  }
  if (isCostExhausted(goal)) return noRun(state, 'maxCostUsd', 'The goal has reached its maxCostUsd.');
  if (isPast(deadlineAt, now)) return noRun(state, 'runTimeoutMs', 'The deadline of the goal has passed.');
  if (started - iterations >= concurrencyOf(bounds, atOnce)) {
    return noRun(
      state,
      'in-flight',
      'The goal has the maximum number of runs in flight. Wait until one has been judged.',
    );
  }
  return { ...goal, started: started + 1 };
}

function noRun(state: GoalState, reason: string, message: string): Refusal {
  return refuse('conflict', message, { state, reason });
}

/** With a cost limit runs are sequential, because two concurrent runs could each spend the whole remainder. */
function concurrencyOf({ maxCostUsd }: GoalBounds, atOnce: number): number {
  return maxCostUsd === undefined ? atOnce : 1;
}

/** What the next run may spend, in USD; undefined without a cost limit. */
export function remainingCostUsd({ bounds: { maxCostUsd }, costUsd }: GoalProgress): number | undefined {
  return maxCostUsd === undefined ? undefined : Math.max(0, addUsd(maxCostUsd, -costUsd));
}

/** A limit of zero still allows runs that cost nothing. */
function isCostExhausted({ bounds: { maxCostUsd }, costUsd }: GoalProgress): boolean {
  return maxCostUsd !== undefined && costUsd >= maxCostUsd && costUsd > 0;
}

function isPast(deadlineAt: number | undefined, now: number): boolean {
  return deadlineAt !== undefined && now >= deadlineAt;
}

/** A verdict on one contributing run, and its cost. */
interface RunVerdict {
  readonly satisfied: boolean;
  /** The verifier could not decide; a person has to. */
  readonly isUndecided: boolean;
  /** Keys of the unmet criteria. */
  readonly open: readonly string[];
  /** Cost of the run and of judging it. */
  readonly costUsd: number;
  /** The run was stopped because it exhausted the goal's remaining budget. */
  readonly isBudgetExhausted: boolean;
}

/** Applies a verdict. Satisfaction takes precedence over every bound that is reached at the same time. */
export function judge(goal: GoalProgress, verdict: RunVerdict, now: number, standstillMax: number): GoalProgress {
  if (goal.state !== 'active') return goal;
  const open = [...new Set(verdict.open)].sort();
  const judged: GoalProgress = {
    ...goal,
    iterations: goal.iterations + 1,
    costUsd: addUsd(goal.costUsd, verdict.costUsd),
    open,
    standstill: goal.iterations > 0 && isSame(open, goal.open) ? goal.standstill + 1 : 1,
  };
  if (verdict.satisfied) return { ...judged, state: 'satisfied' };
  if (verdict.isBudgetExhausted || isBoundReached(judged, now)) return { ...judged, state: 'bound-exceeded' };
  return verdict.isUndecided || judged.standstill >= standstillMax ? { ...judged, state: 'escalated' } : judged;
}

function isBoundReached(goal: GoalProgress, now: number): boolean {
  const { bounds, iterations, deadlineAt } = goal;
  const isLast = iterations >= (bounds.maxLoopIterations ?? Number.POSITIVE_INFINITY);
  return isLast || isCostExhausted(goal) || isPast(deadlineAt, now);
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((key, index) => key === other[index]);
}

/** Closes a goal whose deadline has passed, even if no run is in flight, it is paused or it waits for a person. */
export function expire(goal: GoalProgress, now: number): GoalProgress {
  return !isClosed(goal) && isPast(goal.deadlineAt, now) ? { ...goal, state: 'bound-exceeded' } : goal;
}

/** Hands an active goal over to a person. */
export function escalate(goal: GoalProgress): GoalProgress {
  return goal.state === 'active' ? { ...goal, state: 'escalated' } : goal;
}

/** Pauses an active goal: no new runs start until it is resumed. */
export function pause(goal: GoalProgress): GoalProgress | Refusal {
  if (goal.state !== 'active') return impossible(goal, 'paused');
  if (goal.isPaused) return impossible(goal, 'paused', 'The goal is already paused.');
  return { ...goal, isPaused: true };
}

/** Continues a paused or escalated goal; one that has meanwhile reached a bound is closed at once. */
export function resume(goal: GoalProgress, now: number): GoalProgress | Refusal {
  if (isClosed(goal)) return impossible(goal, 'resumed');
  if (goal.state === 'active' && !goal.isPaused)
    return impossible(
      goal,
      'resumed',
      'The goal is not paused. It goes on as its continuation says; nothing is to be done.',
    );
  const resumed: GoalProgress = { ...goal, state: 'active', isPaused: false, standstill: 0 };
  return isBoundReached(resumed, now) ? { ...resumed, state: 'bound-exceeded' } : resumed;
}

/** Returns an escalated goal to active after the person who was asked has answered. It does not end a pause. */
export function reopen(goal: GoalProgress, now: number): GoalProgress {
  if (goal.state !== 'escalated') return goal;
  return expire({ ...goal, state: 'active', standstill: 0 }, now);
}

/** Closes a goal at the request of its owner. */
export function abandon(goal: GoalProgress): GoalProgress | Refusal {
  return isClosed(goal) ? impossible(goal, 'abandoned') : { ...goal, state: 'abandoned' };
}

/** Refuses to edit a goal that is closed. One that waits for a person is repaired by an edit. */
export function refuseChange(goal: GoalProgress): Refusal | undefined {
  return isClosed(goal) ? impossible(goal, 'changed') : undefined;
}

function impossible(goal: GoalProgress, action: string, message?: string): Refusal {
  const { state } = goal;
  const next = isClosed(goal)
    ? 'It is closed for good. To go on, create a new goal with the same objective.'
    : 'It waits for a person: answer its question in the inbox, or resume it.';
  return refuse('conflict', message ?? `A goal that is ${state} cannot be ${action}. ${next}`, { state });
}
