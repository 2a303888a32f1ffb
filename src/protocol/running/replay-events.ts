import { Type } from 'typebox';
import { Closed, NonEmpty, OneOf } from '../format/schema.ts';

/** Events of a replay that does not repeat its source. */
export const REPLAY_EVENTS = {
  'replay.diverged': {
    tier: 'debug',
    payload: Type.Object({
      sourceRunId: NonEmpty,
      atSequence: Type.Integer({ minimum: 0 }),
      originalEventId: Type.Optional(NonEmpty),
      divergenceKind: Type.Optional(OneOf(['output', 'missing', 'extra', 'type-mismatch'])),
      divergencePoint: Type.Optional(NonEmpty),
    }),
  },
  'replay.divergedAtRefusal': {
    tier: 'debug',
    payload: Closed({
      sourceRunId: NonEmpty,
      atSequence: Type.Integer({ minimum: 0 }),
      originalEventId: Type.Optional(NonEmpty),
      nodeId: Type.Optional(NonEmpty),
      originalEnvelopeKind: OneOf(['valid', 'refusal']),
      replayEnvelopeKind: OneOf(['valid', 'refusal']),
    }),
  },
} as const;
