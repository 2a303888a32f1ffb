import type { GoalState } from '../../src/protocol/learning/goals.ts';
import { GOAL_STATES } from './states.ts';

/** Which goals are listed, as the address has it. */
export interface GoalsSearch {
  readonly state?: GoalState;
  /** The form for a new goal is open. */
  readonly edit?: 'goal';
}

/** What of a goal is shown, as the address has it. */
export interface GoalSearch {
  /** The run whose verdict is open. */
  readonly verdict?: string;
  /** The form that is open. */
  readonly edit?: 'goal' | 'plan';
}

/** Reads the filter; what makes no sense is left out. */
export function readGoalsSearch(search: Record<string, unknown>): GoalsSearch {
  const state = GOAL_STATES.find((known) => known === search.state);
  return { ...(state && { state }), ...(search.edit === 'goal' && { edit: 'goal' }) };
}

/** Reads which verdict and which form are open. */
export function readGoalSearch({ verdict, edit }: Record<string, unknown>): GoalSearch {
  return {
    ...(typeof verdict === 'string' && verdict !== '' && { verdict }),
    ...((edit === 'goal' || edit === 'plan') && { edit }),
  };
}
