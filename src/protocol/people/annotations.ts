import { type Static, Type } from 'typebox';
import { RATING } from '../format/choices.ts';
import { Closed, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';

export { BUCKETS, type Bucket, RATING } from '../format/choices.ts';

const Optional = Type.Optional;

/** How fine a judgement may be anchored. */
export const ANNOTATION_TARGETS = ['run', 'event', 'node'] as const;
export const SIGNAL_KINDS = ['rating', 'correction', 'label', 'flag'] as const;
export type SignalKind = (typeof SIGNAL_KINDS)[number];

export const Signal = Closed({
  kind: OneOf(SIGNAL_KINDS),
  rating: Optional(Type.Integer({ ...RATING, description: 'Needed when kind is rating' })),
  label: Optional(Type.String({ description: 'Needed when kind is label' })),
  correction: Optional(Type.String({ description: 'Needed when kind is correction: how it should have been' })),
});
export type Signal = Static<typeof Signal>;

const anchor = {
  eventId: Optional(Type.String({ description: 'An event of the run' })),
  nodeId: Optional(Type.String({ description: 'A node of the workflow' })),
};

export const AnnotationCreate = Closed(
  { target: Optional(Closed(anchor)), signal: Signal, note: Optional(Type.String()) },
  { $id: 'AnnotationCreate' },
);
export type AnnotationCreate = Static<typeof AnnotationCreate>;

/** What somebody thinks of a run, or of a part of it. It stands beside the log, never in it. */
export const Annotation = Closed(
  {
    annotationId: NonEmpty,
    target: Closed({ runId: NonEmpty, ...anchor }),
    signal: Signal,
    actor: Closed({ principalRef: NonEmpty }),
    note: Optional(Type.String()),
    createdAt: Timestamp,
  },
  { $id: 'Annotation' },
);
export type Annotation = Static<typeof Annotation>;

export const AnnotationList = Type.Object(
  {
    annotations: Type.Array(Annotation, { description: 'Oldest first' }),
    superseded: Optional(
      Type.Array(NonEmpty, { description: 'Ids of ratings that their author has replaced by a later one' }),
    ),
  },
  { $id: 'AnnotationList' },
);
export type AnnotationList = Static<typeof AnnotationList>;

const figures = {
  runs: Type.Integer({ minimum: 0, description: 'Runs that were started in the time and have ended' }),
  annotatedRuns: Type.Integer({ minimum: 0 }),
  ratings: Type.Integer({ minimum: 0, description: 'Of each author on each target, the latest' }),
  meanRating: Type.Union([Type.Number(), Type.Null()]),
  correctionRate: Type.Number({ minimum: 0, maximum: 1 }),
  flagRate: Type.Number({ minimum: 0, maximum: 1 }),
  interventionRate: Type.Number({ minimum: 0, maximum: 1, description: 'Runs that needed an answer of a person' }),
};

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
export type FeedbackSummary = Static<typeof FeedbackSummary>;

/** The live message that carries an annotation. It is no event: it has no sequence and is never read again. */
export const RUN_ANNOTATED = 'run.annotated';
