import { type Static, Type } from 'typebox';
import { AnyObject, Closed, MapOf, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { Owner } from '../running/events.ts';
import { RunId } from '../running/runs.ts';
import { FIRE_CONDITIONS } from './commitment-events.ts';
import { Observation, ObservationExpression } from './observations.ts';

const Optional = Type.Optional;

const SECONDS_MAX = 31 * 86_400;

const Predicate = Closed({
  observe: Observation,
  when: Type.String({ ...ObservationExpression, description: 'CEL over `observed`; kept once it is true' }),
  everySec: Type.Integer({ minimum: 1, maximum: SECONDS_MAX, description: 'From one look to the next' }),
  repeats: Optional(Type.Boolean({ description: 'Kept again each time that it becomes true; once otherwise' })),
});

const spec = {
  memoryRef: Type.String({ minLength: 1, maxLength: 512, description: 'The memory that it came from' }),
  memoryId: Optional(Type.String({ minLength: 1, maxLength: 1_500, description: 'The entry of it' })),
  intention: Optional(Type.String({ minLength: 1, maxLength: 4_000, description: 'What is meant; no event tells it' })),
  workflowId: Type.String({ minLength: 1, maxLength: 128, description: 'What is run when it is kept' }),
  inputs: Optional(MapOf(Type.Unknown(), { description: 'What the run is given, besides `commitment`' })),
  at: Optional(Type.String({ format: 'date-time', maxLength: 64, description: 'Kept at this time' })),
  everySec: Optional(
    Type.Integer({
      minimum: 1,
      maximum: SECONDS_MAX,
      description: 'Kept again so long after `at`, and so on; once otherwise',
    }),
  ),
  predicate: Optional(Predicate),
};

export const CommitmentRequest = Closed(spec, { $id: 'CommitmentRequest' });
export type CommitmentRequest = Static<typeof CommitmentRequest>;

export const COMMITMENT_STATES = ['armed', 'fired', 'failed', 'off'] as const;
export type CommitmentState = (typeof COMMITMENT_STATES)[number];

export const Commitment = Type.Object(
  {
    id: NonEmpty,
    ...spec,
    inputs: Optional(AnyObject),
    condition: OneOf(FIRE_CONDITIONS),
    state: OneOf(COMMITMENT_STATES),
    nextCheckAt: Optional(Timestamp),
    lastError: Optional(Type.String({ description: 'Why it could not be looked at, or kept, the last time' })),
    firedAt: Optional(Timestamp),
    runId: Optional(RunId),
    owner: Owner,
    belongsTo: Optional(Type.String({ description: 'What made it, and changes it, where that is not a person' })),
    createdAt: Timestamp,
  },
  { $id: 'Commitment' },
);
export type Commitment = Static<typeof Commitment>;
