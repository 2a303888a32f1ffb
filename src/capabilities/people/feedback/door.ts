import type { Annotation } from '../../../protocol/people/annotations.ts';
import type { RunRow } from '../../../store/log.ts';
import type { Unit } from '../../../store/sql.ts';
import { door, extensionPoint } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import type { AnnotationPlace, AnnotationRow, ListedAnnotationRow } from './records.ts';

/** Annotations of runs, as other capabilities read them. */
export interface Feedback {
  /** The annotations of a run, oldest first, in pages. */
  pages(run: Pick<RunRow, 'tenant' | 'run_id'>): AsyncGenerator<ListedAnnotationRow[]>;
  /** The annotations of a run for an export; none if the caller may not read them. */
  annotationsOf(caller: Caller, runId: string): Promise<Annotation[]>;
  /** Corrections by people in a tenant after a position, oldest first. */
  corrections(tenant: string, after: AnnotationPlace, limit: number): Promise<Correction[]>;
  /** Those of some runs that people corrected. */
  corrected(tenant: string, runIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** What people think of runs, by run; a run without ratings, flags and disputes has no entry. */
  opinions(tenant: string, runIds: readonly string[]): Promise<ReadonlyMap<string, RunOpinion>>;
  /** A SELECT of the ids of flagged runs of the tenant `$1`, for use inside a statement that lists runs. */
  readonly flaggedRuns: string;
}

/** What people think of a run. */
export interface RunOpinion {
  readonly flagged: boolean;
  /** Whether somebody said that the verdict on it is wrong, or that it did not reach its goal. */
  readonly disputed: boolean;
  readonly meanRating?: number;
}

/** The door to feedback. */
export const Feedback = door<Feedback>()('feedback');

/** A correction by a person: which run, and which part of it. */
export interface Correction extends AnnotationPlace, Pick<AnnotationRow, 'run_id' | 'workspace' | 'workflow_id'> {
  readonly target: Pick<Annotation['target'], 'eventId' | 'nodeId'>;
}

/** Writes that follow from a person's annotation, in the same unit. */
type AnnotationReaction = (tenant: string, annotation: Annotation) => Unit;

/** Where capabilities react to annotations. */
export const AnnotationReactions = extensionPoint<AnnotationReaction>('feedback.annotation-reactions');
