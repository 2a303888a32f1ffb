import { type Static, Type } from 'typebox';
import { NonEmpty, OneOf } from '../format/schema.ts';

/** What can fire a commitment: a point in time, or a predicate that becomes true. */
export const FIRE_CONDITIONS = ['time', 'predicate'] as const;
/** One of FIRE_CONDITIONS. */
export type FireCondition = (typeof FIRE_CONDITIONS)[number];

/** Payload of `commitment.fired`; it never contains the intention. */
export const CommitmentFired = Type.Object({
  commitmentId: NonEmpty,
  memoryRef: NonEmpty,
  condition: OneOf(FIRE_CONDITIONS),
  memoryId: Type.Optional(NonEmpty),
  enqueuedRunId: Type.Optional(NonEmpty),
});
/** A valid payload of `commitment.fired`; `enqueuedRunId` is the run that it started. */
export type CommitmentFired = Static<typeof CommitmentFired>;

/** Events about commitments. */
export const COMMITMENT_EVENTS = { 'commitment.fired': { tier: 'debug', payload: CommitmentFired } } as const;
