import { type Static, Type } from 'typebox';
import { NonEmpty, OneOf } from '../format/schema.ts';

export const FIRE_CONDITIONS = ['time', 'predicate'] as const;
export type FireCondition = (typeof FIRE_CONDITIONS)[number];

/** What is told of a commitment that was kept: never what was intended. */
export const CommitmentFired = Type.Object({
  commitmentId: NonEmpty,
  memoryRef: NonEmpty,
  condition: OneOf(FIRE_CONDITIONS),
  memoryId: Type.Optional(NonEmpty),
  enqueuedRunId: Type.Optional(NonEmpty),
});
export type CommitmentFired = Static<typeof CommitmentFired>;

export const COMMITMENT_EVENTS = { 'commitment.fired': { tier: 'debug', payload: CommitmentFired } } as const;
