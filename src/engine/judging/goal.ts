import { type Refusal, refuse } from '../../protocol/errors.ts';
import type { GoalBounds, GoalState } from '../../protocol/learning/goals.ts';
import { addUsd } from '../models/budget.ts';

/**
 * What a goal has come to, as far as that decides what happens next.
 *
 * G1. Only a verdict satisfies a goal.
 * G2. A goal starts no more runs than its bound says, and none once it has stopped.
 * G3. A goal that has stopped for good stays as it is, whatever arrives late.
 */
export interface GoalProgress {
  readonly state: GoalState;
  readonly isPaused: boolean;
  readonly bounds: GoalBounds;
  readonly deadlineAt?: number | undefined;
  /** Contributing runs that were started, and those of them that were judged. */
  readonly started: number;
  readonly iterations: number;
  readonly costUsd: number;
  /** Criteria that the last verdict left open, and how many verdicts in a row have left exactly these. */
  readonly open: readonly string[];
  readonly standstill: number;
}

/** Later than this no clock can tell. */
const TIME_MAX = 8.64e15;

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

/** Whether nothing can become of a goal any more. An escalated one waits for a person. */
export function isClosed({ state }: Pick<GoalProgress, 'state'>): boolean {
  return state !== 'active' && state !== 'escalated';
}

/** Whether a move ended in a stop, which is told once. Giving up what stands still already is the same stop. */
export function hasStopped(before: GoalProgress, after: GoalProgress): boolean {
  if (after.state === 'active' || after.state === before.state) return false;
  return before.state === 'active' || after.state !== 'abandoned';
}

/** Counts one more contributing run, or says why there is none. `atOnce` limits those that are not judged yet. */
export function startRun(goal: GoalProgress, now: number, atOnce: number): GoalProgress | Refusal {
  const { state, isPaused, bounds, deadlineAt, started, iterations } = goal;
  if (state !== 'active') return noRun(state, 'stopped', `The goal is ${state}.`);
  if (isPaused) return noRun(state, 'paused', 'The goal is paused.');
  if (started >= (bounds.maxLoopIterations ?? Number.POSITIVE_INFINITY)) {
    return noRun(state, 'maxLoopIterations', 'The goal has had all the runs that it may have.');
  }
  if (isCostUsedUp(goal)) return noRun(state, 'maxCostUsd', 'The goal has cost all that it may cost.');
  if (isPast(deadlineAt, now)) return noRun(state, 'runTimeoutMs', 'The time of the goal is over.');
  if (started - iterations >= atOnceOf(bounds, atOnce)) {
    return noRun(state, 'in-flight', 'Another run of the goal has yet to come to its end.');
  }
  return { ...goal, started: started + 1 };
}

function noRun(state: GoalState, reason: string, message: string): Refusal {
  return refuse('conflict', message, { state, reason });
}

/** What is left of a limit on cost belongs to one run at a time: two could each spend all of it. */
function atOnceOf({ maxCostUsd }: GoalBounds, atOnce: number): number {
  return maxCostUsd === undefined ? atOnce : 1;
}

/** What the next run may spend. */
export function costLeft({ bounds: { maxCostUsd }, costUsd }: GoalProgress): number | undefined {
  return maxCostUsd === undefined ? undefined : Math.max(0, addUsd(maxCostUsd, -costUsd));
}

/** A goal that may cost nothing can do what costs nothing. */
function isCostUsedUp({ bounds: { maxCostUsd }, costUsd }: GoalProgress): boolean {
  return maxCostUsd !== undefined && costUsd >= maxCostUsd && costUsd > 0;
}

function isPast(deadlineAt: number | undefined, now: number): boolean {
  return deadlineAt !== undefined && now >= deadlineAt;
}

/** What a judge found, and what getting there has cost. */
export interface Judged {
  readonly satisfied: boolean;
  readonly isUndecided: boolean;
  /** Criteria that are not met. */
  readonly open: readonly string[];
  /** Of the run and of judging it. */
  readonly costUsd: number;
  /** The run was stopped by what was left for it to spend. */
  readonly ranOutOfMoney: boolean;
}

/** What one more verdict does to a goal. A satisfied one wins over every bound. */
export function judge(goal: GoalProgress, verdict: Judged, now: number, standstillMax: number): GoalProgress {
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
  if (verdict.ranOutOfMoney || isUsedUp(judged, now)) return { ...judged, state: 'bound-exceeded' };
  return verdict.isUndecided || judged.standstill >= standstillMax ? { ...judged, state: 'escalated' } : judged;
}

function isUsedUp(goal: GoalProgress, now: number): boolean {
  const { bounds, iterations, deadlineAt } = goal;
  const isLast = iterations >= (bounds.maxLoopIterations ?? Number.POSITIVE_INFINITY);
  return isLast || isCostUsedUp(goal) || isPast(deadlineAt, now);
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((key, index) => key === other[index]);
}

/** Time alone ends a goal, too, also one that nobody works on. */
export function expire(goal: GoalProgress, now: number): GoalProgress {
  return goal.state === 'active' && isPast(goal.deadlineAt, now) ? { ...goal, state: 'bound-exceeded' } : goal;
}

/** Somebody has to say how it goes on. */
export function escalate(goal: GoalProgress): GoalProgress {
  return goal.state === 'active' ? { ...goal, state: 'escalated' } : goal;
}

export function pause(goal: GoalProgress): GoalProgress | Refusal {
  if (goal.state !== 'active') return impossible(goal, 'paused');
  if (goal.isPaused) return impossible(goal, 'paused', 'The goal is paused already.');
  return { ...goal, isPaused: true };
}

/** Goes on after a pause, or after a person has looked into it. A bound that is used up by then stops it at once. */
export function resume(goal: GoalProgress, now: number): GoalProgress | Refusal {
  if (isClosed(goal)) return impossible(goal, 'resumed');
  if (goal.state === 'active' && !goal.isPaused) return impossible(goal, 'resumed', 'The goal is not paused.');
  const resumed: GoalProgress = { ...goal, state: 'active', isPaused: false, standstill: 0 };
  return isUsedUp(resumed, now) ? { ...resumed, state: 'bound-exceeded' } : resumed;
}

/** The person whom a run asked has answered it. A pause is not theirs to end. */
export function reopen(goal: GoalProgress, now: number): GoalProgress {
  if (goal.state !== 'escalated') return goal;
  return expire({ ...goal, state: 'active', standstill: 0 }, now);
}

export function abandon(goal: GoalProgress): GoalProgress | Refusal {
  return isClosed(goal) ? impossible(goal, 'abandoned') : { ...goal, state: 'abandoned' };
}

/** Whether what a goal consists of may be changed now. */
export function refuseChange(goal: GoalProgress): Refusal | undefined {
  return goal.state === 'active' ? undefined : impossible(goal, 'changed');
}

function impossible({ state }: GoalProgress, deed: string, message?: string): Refusal {
  return refuse('conflict', message ?? `A goal that is ${state} cannot be ${deed}.`, { state });
}
