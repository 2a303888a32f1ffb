import { Type } from 'typebox';
import { Closed, NonEmpty, OneOf } from '../format/schema.ts';

export const Confidence = Type.Number({ minimum: 0, maximum: 1 });

/** What the log tells of a goal: never what it is about. */
export const GOAL_EVENTS = {
  'goal.evaluated': {
    tier: 'updates',
    payload: Closed({
      goalId: NonEmpty,
      satisfied: Type.Boolean(),
      runId: NonEmpty,
      iterations: Type.Integer({ minimum: 0 }),
      confidence: Type.Optional(Confidence),
    }),
  },
  'goal.closed': {
    tier: 'updates',
    payload: Closed({
      goalId: NonEmpty,
      finalState: OneOf(['satisfied', 'escalated', 'abandoned', 'bound-exceeded']),
    }),
  },
} as const;
