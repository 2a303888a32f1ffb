import { type Static, Type } from 'typebox';
import { Closed, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';

const Optional = Type.Optional;

const Figure = Closed({
  runs: Type.Integer({ minimum: 0, description: 'Runs that it is about' }),
  value: Type.Number({ description: 'How many of them, or the mean over them' }),
});

const VERDICTS = ['better', 'worse', 'unclear', 'too-few'] as const;

/** One thing that was measured before and after a proposal was applied. */
export const EffectMeasure = Closed(
  {
    name: OneOf(['failures', 'corrections', 'ratings', 'cost']),
    before: Figure,
    after: Figure,
    verdict: OneOf(VERDICTS),
    p: Optional(
      Type.Number({ minimum: 0, maximum: 1, description: 'How likely such a difference is if nothing has changed' }),
    ),
    sentence: Type.String({ description: 'The same in words' }),
  },
  { $id: 'EffectMeasure' },
);
/** A measure with its significance. */
export type EffectMeasure = Static<typeof EffectMeasure>;

/** What has changed since a proposal was applied, over two windows of the same length. */
export const ProposalEffect = Closed(
  {
    proposalId: NonEmpty,
    artifactRef: NonEmpty,
    appliedAt: Timestamp,
    windowMs: Type.Integer({
      minimum: 0,
      description: 'Length of each window; the first ends where the second begins',
    }),
    workflows: Type.Array(NonEmpty, { description: 'The workflows whose runs are compared' }),
    verdict: OneOf(VERDICTS),
    measures: Type.Array(EffectMeasure),
    rollbackProposalId: Optional(Type.String({ description: 'The proposal that would take it back' })),
  },
  { $id: 'ProposalEffect' },
);
/** The effect of an applied proposal. */
export type ProposalEffect = Static<typeof ProposalEffect>;
