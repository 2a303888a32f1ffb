import { type Static, Type } from 'typebox';
import { Closed, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { CRITERIA_MAX, Criterion, Evidence } from './verifiers.ts';

const Optional = Type.Optional;
const Count = Type.Integer({ minimum: 0 });
const Usd = Type.Number({ minimum: 0 });

/** The tag of preview runs. */
export const PREVIEW_TAG = 'capstan:preview';
/** Source runs that one preview repeats at most. */
const PREVIEW_RUNS_MAX = 20;
/** Dollars that one preview may spend at most. */
const PREVIEW_BUDGET_MAX = 100;

/** Asks for a preview of a proposal. */
export const PreviewRequest = Closed(
  {
    budgetUsd: Type.Number({
      minimum: 0,
      maximum: PREVIEW_BUDGET_MAX,
      description: 'What models may cost, those of judges included',
    }),
    maxRuns: Optional(
      Type.Integer({
        minimum: 1,
        maximum: PREVIEW_RUNS_MAX,
        description: 'Source runs to repeat, the newest first. Defaults to 10',
      }),
    ),
    verifierRef: Optional(
      Type.String({
        minLength: 1,
        maxLength: 160,
        description: 'The verifier that rates both runs: `id` or `id@version`',
      }),
    ),
    criteria: Optional(
      Type.Array(Criterion, {
        minItems: 1,
        maxItems: CRITERIA_MAX,
        description: 'Criteria that rate both runs instead',
      }),
    ),
  },
  { $id: 'PreviewRequest' },
);
/** A well-formed request; `verifierRef` and `criteria` exclude each other. */
export type PreviewRequest = Static<typeof PreviewRequest>;

/** How one run of a pair was rated. */
export const PreviewRating = Closed(
  {
    verdict: OneOf(['pass', 'fail', 'undecided']),
    status: Optional(Type.String({ description: 'How the run ended' })),
    judge: Optional(Type.String({ description: 'Who rated it' })),
    reason: Optional(Type.String({ description: 'Why there is no verdict' })),
    evidence: Optional(Type.Array(Evidence)),
    costUsd: Optional(Usd),
  },
  { $id: 'PreviewRating' },
);
/** A rating; `undecided` counts neither for nor against the draft. */
export type PreviewRating = Static<typeof PreviewRating>;

/** A source run, and the same with the draft in place. */
export const PreviewPair = Closed(
  {
    sourceRunId: NonEmpty,
    runId: Optional(Type.String({ description: 'The run with the draft in place' })),
    state: OneOf(['waiting', 'running', 'judging', 'done', 'not-run']),
    reason: Optional(Type.String({ description: 'Why it was not run' })),
    change: Optional(
      OneOf(['now-passes', 'worse', 'same', 'undecided'], {
        description: 'What the draft changes, once both are rated',
      }),
    ),
    before: Optional(PreviewRating),
    after: Optional(PreviewRating),
    diff: Optional(Type.String({ description: 'Path that compares both runs' })),
  },
  { $id: 'PreviewPair' },
);
/** A pair of a preview. */
export type PreviewPair = Static<typeof PreviewPair>;

/** What a schedule would have done, and what people did. */
export const PreviewCalendar = Closed(
  {
    timezone: NonEmpty,
    next: Type.Array(Timestamp, { description: 'When it would fire next' }),
    starts: Type.Array(
      Closed({
        runId: NonEmpty,
        startedAt: Timestamp,
        firing: Optional(Timestamp),
        minutesLater: Optional(
          Type.Integer({ description: 'How long after the start it would have fired; negative: before' }),
        ),
      }),
      { description: 'Runs that people started, and the firing next to each' },
    ),
    unmatched: Type.Array(Timestamp, { description: 'Firings in that time close to which nobody started a run' }),
  },
  { $id: 'PreviewCalendar' },
);
/** The calendar of an automation. */
export type PreviewCalendar = Static<typeof PreviewCalendar>;

/** The result of a preview, counted. */
export const PreviewSummary = Closed(
  {
    runs: Count,
    nowPass: Count,
    worse: Count,
    same: Count,
    undecided: Count,
    notRun: Count,
    costDeltaUsd: Optional(Type.Number({ description: 'What a run costs more with the draft, on average' })),
    spentUsd: Type.Number({ minimum: 0, description: 'What the preview has cost, with its judges' }),
    sentence: Type.String({ description: 'The same in words' }),
  },
  { $id: 'PreviewSummary' },
);
/** The figures of a preview. */
export type PreviewSummary = Static<typeof PreviewSummary>;

/** A preview of a proposal: its source runs again, with the draft in place. */
export const ProposalPreview = Closed(
  {
    id: NonEmpty,
    proposalId: NonEmpty,
    kind: NonEmpty,
    artifactHash: Type.String({ description: 'SHA-256 of the artifact that was in place' }),
    state: OneOf(['running', 'done']),
    budgetUsd: Usd,
    createdAt: Timestamp,
    endedAt: Optional(Timestamp),
    summary: PreviewSummary,
    pairs: Type.Array(PreviewPair),
    calendar: Optional(PreviewCalendar),
  },
  { $id: 'ProposalPreview' },
);
/** A preview; its summary is final once `state` is `done`. */
export type ProposalPreview = Static<typeof ProposalPreview>;

/** The previews of a proposal that are kept. */
export const ProposalPreviewList = Closed(
  { previews: Type.Array(ProposalPreview, { description: 'Newest first' }) },
  { $id: 'ProposalPreviewList' },
);
/** Previews of a proposal, newest first. */
export type ProposalPreviewList = Static<typeof ProposalPreviewList>;
