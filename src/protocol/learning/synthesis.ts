import { type Static, Type } from 'typebox';
import { Closed, OneOf } from '../format/schema.ts';
import { RunId } from '../running/runs.ts';
import { ARTIFACT_KINDS, Proposal } from './proposals.ts';

const SOURCE_RUNS_MAX = 1_000;

/** Asks the host to derive proposals from finished runs now. */
export const SynthesizeRequest = Closed(
  {
    kinds: Type.Optional(
      Type.Array(OneOf(ARTIFACT_KINDS), { uniqueItems: true, description: 'Kinds to propose; all by default' }),
    ),
    sourceRunIds: Type.Optional(
      Type.Array(RunId, { minItems: 1, maxItems: SOURCE_RUNS_MAX, description: 'Restrict the analysis to these runs' }),
    ),
    since: Type.Optional(
      Type.String({
        format: 'date-time',
        maxLength: 64,
        description: 'Restrict the analysis to runs started at or after this time',
      }),
    ),
  },
  { $id: 'SynthesizeRequest' },
);
/** A valid synthesis request; every member narrows the analysis or its result. */
export type SynthesizeRequest = Static<typeof SynthesizeRequest>;

/** Why a habit is not proposed. */
export const HELD_BACK_REASONS = [
  'needs-more',
  'irregular',
  'ended-badly',
  'proposed',
  'rejected',
  'never',
  'restates',
  'personal-data',
  'unsafe',
  'useless',
  'invalid',
  'inline-prompt',
  'costly',
] as const;
/** One of HELD_BACK_REASONS. */
export type HeldBackReason = (typeof HELD_BACK_REASONS)[number];

/** A habit that was seen and not proposed. */
export const HeldBack = Type.Object(
  {
    kind: OneOf(ARTIFACT_KINDS),
    what: Type.String({ description: 'The habit, in words' }),
    reason: OneOf(HELD_BACK_REASONS),
    message: Type.String({ description: 'Why it is not proposed, such as "needs 2 more runs"' }),
    proposalId: Type.Optional(Type.String({ description: 'The earlier proposal of this habit' })),
    ref: Type.Optional(Type.String({ description: 'The artifact or proposal that it would repeat' })),
  },
  { $id: 'HeldBack' },
);
/** A habit that was seen and not proposed, with the reason. */
export type HeldBack = Static<typeof HeldBack>;

/** The proposals that were created. */
export const SynthesizeReply = Type.Object(
  {
    created: Type.Array(Proposal),
    scannedRuns: Type.Integer({
      minimum: 0,
      description: 'Number of runs analysed: those that ended since the last analysis',
    }),
    heldBack: Type.Array(HeldBack, { description: 'Habits that were seen and not proposed, at most 100' }),
    pendingLimitReached: Type.Optional(
      Type.Literal(true, { description: 'Nothing more was drafted because too many proposals wait for a decision' }),
    ),
  },
  { $id: 'SynthesizeReply' },
);
/** The result of a synthesis; `created` is empty if the runs gave no reason for a proposal. */
export type SynthesizeReply = Static<typeof SynthesizeReply>;
