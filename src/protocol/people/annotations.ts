import { type Static, Type } from 'typebox';
import { RATING } from '../format/choices.ts';
import { Closed, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';

export { BUCKETS, type Bucket, RATING } from '../format/choices.ts';

const Optional = Type.Optional;

/** What an annotation can refer to. */
export const ANNOTATION_TARGETS = ['run', 'event', 'node'] as const;
/** Kinds of feedback. */
export const SIGNAL_KINDS = ['rating', 'correction', 'label', 'flag'] as const;
/** One of SIGNAL_KINDS. */
export type SignalKind = (typeof SIGNAL_KINDS)[number];

/** The longest text of an annotation, in characters. */
export const ANNOTATION_TEXT_MAX = 65_536;
const Text = (options: object = {}) => Type.String({ maxLength: ANNOTATION_TEXT_MAX, ...options });

/** One piece of feedback; the member that belongs to `kind` is required. */
export const Signal = Closed({
  kind: OneOf(SIGNAL_KINDS),
  rating: Optional(Type.Integer({ ...RATING, description: 'Required if kind is rating' })),
  label: Optional(Text({ description: 'Required if kind is label' })),
  correction: Optional(Text({ description: 'Required if kind is correction: the expected result' })),
});
/** A well-formed signal; the rules of the feedback capability check the member that `kind` requires. */
export type Signal = Static<typeof Signal>;

const anchor = {
  eventId: Optional(Type.String({ description: 'Id of an event of the run' })),
  nodeId: Optional(Type.String({ description: 'Id of a node of the workflow' })),
};

/** Adds feedback to a run, an event or a node. */
export const AnnotationCreate = Closed(
  { target: Optional(Closed(anchor)), signal: Signal, note: Optional(Text()) },
  { $id: 'AnnotationCreate' },
);
/** A well-formed annotation to be added; without a target it refers to the whole run. */
export type AnnotationCreate = Static<typeof AnnotationCreate>;

/** Feedback on a run or a part of it. Annotations are stored next to the log and are not events. */
export const Annotation = Closed(
  {
    annotationId: NonEmpty,
    target: Closed({ runId: NonEmpty, ...anchor }),
    signal: Signal,
    actor: Closed({ principalRef: NonEmpty }),
    note: Optional(Text()),
    createdAt: Timestamp,
  },
  { $id: 'Annotation' },
);
/** A stored annotation; it never changes, and a later rating by its author replaces it in statistics. */
export type Annotation = Static<typeof Annotation>;

/** The annotations of a run. */
export const AnnotationList = Type.Object(
  {
    annotations: Type.Array(Annotation, { description: 'Oldest first' }),
    superseded: Optional(
      Type.Array(NonEmpty, { description: 'Ids of ratings that their author replaced by a later one' }),
    ),
  },
  { $id: 'AnnotationList' },
);
/** All annotations of a run, those that were superseded included. */
export type AnnotationList = Static<typeof AnnotationList>;

const figures = {
  runs: Type.Integer({ minimum: 0, description: 'Runs started in the period that have ended' }),
  annotatedRuns: Type.Integer({ minimum: 0 }),
  ratings: Type.Integer({
    minimum: 0,
    description: 'Number of ratings, counting only the latest per author and target',
  }),
  meanRating: Type.Union([Type.Number(), Type.Null()]),
  correctionRate: Type.Number({ minimum: 0, maximum: 1 }),
  flagRate: Type.Number({ minimum: 0, maximum: 1 }),
  interventionRate: Type.Number({
    minimum: 0,
    maximum: 1,
    description: 'Share of runs that needed an answer from a person',
  }),
};

/** Feedback statistics of a period. */
export const FeedbackSummary = Type.Object(
  {
    ...figures,
    mostCorrectedNodes: Type.Array(
      Type.Object({ workflowId: NonEmpty, nodeId: NonEmpty, corrections: Type.Integer({ minimum: 1 }) }),
    ),
    mostCorrectedWorkflows: Type.Array(
      Type.Object({ workflowId: NonEmpty, corrections: Type.Integer({ minimum: 1 }) }),
    ),
    buckets: Type.Array(Type.Object({ start: Timestamp, ...figures })),
  },
  { $id: 'FeedbackSummary' },
);
/** The statistics of a period, as a whole and for each bucket of time in it. */
export type FeedbackSummary = Static<typeof FeedbackSummary>;

/** The live stream message for a new annotation. It is not an event: it has no sequence and cannot be read later. */
export const RUN_ANNOTATED = 'run.annotated';
