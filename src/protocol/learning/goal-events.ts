import { Type } from 'typebox';
import { Closed, NonEmpty, OneOf } from '../format/schema.ts';

/** A probability between 0 and 1. */
export const Confidence = Type.Number({ minimum: 0, maximum: 1 });

/** Events about goals; they never contain the objective. */
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
