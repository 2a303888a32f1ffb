import type { Goal, GoalState } from '../../src/protocol/learning/goals.ts';

type StateMark = readonly [hue: string, shape: string, word: string];

/** How the states of goals are shown: a hue, a shape and a word. */
export const STATES: Readonly<Record<GoalState, StateMark>> = {
  escalated: ['waiting', '◐', 'Needs a person'],
  active: ['running', '●', 'Active'],
  satisfied: ['completed', '✓', 'Satisfied'],
  'bound-exceeded': ['failed', '✕', 'Out of bounds'],
  abandoned: ['cancelled', '⊘', 'Abandoned'],
};

/** An active goal that starts nothing for now. */
export const PAUSED: StateMark = ['paused', '‖', 'Paused'];

/** The states, those that need somebody first. */
export const GOAL_STATES = Object.keys(STATES) as readonly GoalState[];

/** Why a goal stopped, in words. */
export const ESCALATIONS: Readonly<Record<string, string>> = {
  'low-confidence': 'A run is not confident enough and asks a person.',
  undecided: 'The judge could not decide.',
  'no-progress': 'Several verdicts in a row left the same criteria open.',
  'second-judge': 'The verdict needs a person: people often disagree with its judge.',
};

/** What starts the next run, in words. */
export const CONTINUATIONS: Readonly<Record<string, string>> = {
  manual: 'by hand',
  schedule: 'by a schedule',
  heartbeat: 'by a heartbeat',
  commitment: 'by a commitment',
};

/** Whether a goal is still worked on, or could be. */
export function isOpenGoal({ state }: Pick<Goal, 'state'>): boolean {
  return state === 'active' || state === 'escalated';
}
