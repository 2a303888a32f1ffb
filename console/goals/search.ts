import type { GoalState } from '../../src/protocol/learning/goals.ts';
import { GOAL_STATES } from './states.ts';

/** Which goals are listed, as the address has it. */
export interface GoalsSearch {
  readonly state?: GoalState;
}

/** What of a goal is shown, as the address has it. */
export interface GoalSearch {
  /** The run whose verdict is open. */
  readonly verdict?: string;
}

/** Reads the filter; what makes no sense is left out. */
export function readGoalsSearch(search: Record<string, unknown>): GoalsSearch {
  const state = GOAL_STATES.find((known) => known === search.state);
  return state ? { state } : {};
}

/** Reads which verdict is open. */
export function readGoalSearch({ verdict }: Record<string, unknown>): GoalSearch {
  return typeof verdict === 'string' && verdict !== '' ? { verdict } : {};
}
