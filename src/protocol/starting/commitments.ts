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
  when: Type.String({
    ...ObservationExpression,
    description: 'CEL expression over `observed`; the commitment fires when it becomes true',
  }),
  everySec: Type.Integer({ minimum: 1, maximum: SECONDS_MAX, description: 'Seconds between two checks' }),
  repeats: Optional(Type.Boolean({ description: 'Fire each time the expression becomes true; otherwise only once' })),
});

const spec = {
  memoryRef: Type.String({ minLength: 1, maxLength: 512, description: 'Memory that contains the commitment' }),
  memoryId: Optional(Type.String({ minLength: 1, maxLength: 1_500, description: 'Id of the memory entry' })),
  intention: Optional(
    Type.String({ minLength: 1, maxLength: 4_000, description: 'What was promised; never included in events' }),
  ),
  workflowId: Type.String({ minLength: 1, maxLength: 128, description: 'Workflow to run when the commitment fires' }),
  inputs: Optional(MapOf(Type.Unknown(), { description: 'Inputs of the run, in addition to `commitment`' })),
  at: Optional(Type.String({ format: 'date-time', maxLength: 64, description: 'Time at which the commitment fires' })),
  everySec: Optional(
    Type.Integer({
      minimum: 1,
      maximum: SECONDS_MAX,
      description: 'Fire again at this interval after `at`; otherwise only once',
    }),
  ),
  predicate: Optional(Predicate),
};

/** Creates a commitment: something an agent promised to do at a time or under a condition. */
export const CommitmentRequest = Closed(spec, { $id: 'CommitmentRequest' });
/** A well-formed request; it needs either `at` or `predicate`. */
export type CommitmentRequest = Static<typeof CommitmentRequest>;

/** States of a commitment. */
export const COMMITMENT_STATES = ['armed', 'fired', 'failed', 'off'] as const;
/** One of COMMITMENT_STATES. */
export type CommitmentState = (typeof COMMITMENT_STATES)[number];

/** A commitment with its state. */
export const Commitment = Type.Object(
  {
    id: NonEmpty,
    ...spec,
    inputs: Optional(AnyObject),
    condition: OneOf(FIRE_CONDITIONS),
    state: OneOf(COMMITMENT_STATES),
    nextCheckAt: Optional(Timestamp),
    lastError: Optional(Type.String({ description: 'Why the last check or run failed' })),
    firedAt: Optional(Timestamp),
    runId: Optional(RunId),
    owner: Owner,
    belongsTo: Optional(
      Type.String({ description: 'Resource that owns it (a goal or a proposal), if it was not created by a caller' }),
    ),
    createdAt: Timestamp,
  },
  { $id: 'Commitment' },
);
/** A commitment as returned to callers; `condition` says whether time or a predicate fires it. */
export type Commitment = Static<typeof Commitment>;
