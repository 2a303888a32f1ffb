import { isClosed } from '../../../engine/judging/goal.ts';
import { defined } from '../../../protocol/format/json.ts';
import type { GoalStanding } from '../../../protocol/learning/goals.ts';
import type { HeldGoal, Stall } from './document.ts';

/** A verdict that is awaited for seconds needs nobody: without a run to judge, only a stall stands as `judging`. */
const NEED_PERSON: ReadonlySet<string> = new Set(['waiting-person', 'cannot-start', 'no-arm', 'judging']);

/** How a goal stands, and why, unless it is closed. */
export function standingOf(goal: HeldGoal, isJudging: boolean): GoalStanding | undefined {
  const { progress, escalation, stall, continuation } = goal;
  if (isClosed(progress)) return undefined;
  if (progress.state === 'escalated') return { status: 'waiting-person', ...defined({ reason: escalation?.reason }) };
  if (isJudging) return { status: 'judging', ...(stall?.status === 'judging' ? { reason: stall.reason } : {}) };
  if (progress.isPaused) return { status: 'waiting-person', reason: 'paused' };
  if (stall) return { status: stall.status, reason: stall.reason };
  if (progress.started > progress.iterations) return { status: 'running' };
  return continuation.mode === 'manual' ? { status: 'waiting-person', reason: 'manual' } : { status: 'armed' };
}

/** Whether a goal waits for a person to do something: to decide, to start a run, to resume or to repair it or its judge. */
export function needsPerson(goal: HeldGoal): boolean {
  return NEED_PERSON.has(standingOf(goal, false)?.status ?? '');
}

/** Why nothing is going to start the runs of a goal that should go on by itself. */
export function stallWithoutArm({ progress, continuation, plan, arm }: HeldGoal, at: number): Stall | undefined {
  const { mode } = continuation;
  if (progress.state !== 'active' || progress.isPaused || mode === 'manual') return undefined;
  if (!plan) return { status: 'cannot-start', reason: 'The goal has no plan.', at };
  return arm ? undefined : { status: 'cannot-start', reason: `The plan has no ${mode}.`, at };
}
