import type { GoalBody, HeldGoal } from './document.ts';
import type { GoalRow } from './records.ts';
import { needsPerson } from './standing.ts';

/** The row that stores a goal. */
export function rowOf(goal: HeldGoal): GoalRow {
  const { row, progress, ...rest } = goal;
  const { state, ...counts } = progress;
  const waits = state === 'active' && needsPerson(goal);
  const stalled_at = waits ? (rest.stall?.at ?? row.stalled_at ?? row.updated_at) : null;
  return { ...row, state, stalled_at, body: JSON.stringify({ ...rest, progress: counts } satisfies GoalBody) };
}
