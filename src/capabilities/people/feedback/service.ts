import { NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import {
  type Annotation,
  type AnnotationCreate,
  type FeedbackSummary,
  RUN_ANNOTATED,
} from '../../../protocol/people/annotations.ts';
import { type Change, changeOf, unchanged } from '../../../runtime/change.ts';
import { eventIdOf, sequenceOf } from '../../../runtime/recording.ts';
import { factsOf } from '../../../runtime/run-row.ts';
import type { RunRow, Visibility } from '../../../store/log.ts';
import type { Unit } from '../../../store/sql.ts';
import type { Host } from '../../capability.ts';
import type { Feed } from '../../operations/feed/door.ts';
import type { Caller } from '../../request.ts';
import type { Audit } from '../../trust/audit/door.ts';
import { type AnnotationFacts, type Author, annotationOf, authorKey, rowOf, targetFrom } from './document.ts';
import { AnnotationReactions, type Correction, type Feedback, type RunOpinion } from './door.ts';
import { AnnotationNotifications } from './notifications.ts';
import { opinionsFrom } from './opinions.ts';
import {
  type AnnotationPlace,
  type AnnotationRow,
  closeReviews,
  countRating,
  FLAGGED_RUNS,
  findAnnotation,
  findCorrected,
  findLabels,
  findQuality,
  insertAnnotation,
  insertReview,
  type ListedAnnotationRow,
  listAnnotations,
  listCorrections,
  markRun,
  type QualityRow,
  withdrawReview,
} from './records.ts';
import { checkSignal, reviewOf } from './rules.ts';
import { type SummaryRequest, summarize } from './summary.ts';

const PAGE = 100;
/** An export has at most this many annotations of a run, and characters of them. */
const EXPORTED_MAX = 10_000;
const EXPORTED_CHARS_MAX = 16_000_000;
const BEFORE_ALL: AnnotationPlace = { created_at: -1, annotation_id: '' };

/** Feedback is about what people got. */
const OF_PREVIEW = refuse('conflict', 'This is a preview run and cannot be annotated. Annotate its source run.');

/** Who annotates which run. */
export interface Annotating {
  readonly visibility: Visibility;
  readonly author: Author;
  readonly runId: string;
  /** The id of the annotation, where every attempt must result in the same one. */
  readonly annotationId?: string;
}

/** What feedback needs of other capabilities. */
interface FeedbackNeeds {
  readonly audit: Pick<Audit, 'record'>;
  readonly feed: Pick<Feed, 'entries' | 'wake'>;
}

/** The beginning of the keys of all authors that are people. */
const PEOPLE = authorKey({ principalRef: '', isAgent: false });
/** Runs that one query names. */
const RUNS_AT_ONCE = 500;

/** Annotations of runs: ratings, corrections, labels and flags. */
export class FeedbackService implements Feedback {
  readonly flaggedRuns = FLAGGED_RUNS;
  readonly #host: Pick<Host, 'runtime' | 'extensions'>;
  readonly #needs: FeedbackNeeds;
  readonly notifications: AnnotationNotifications;

  constructor(host: Pick<Host, 'runtime' | 'extensions'>, needs: FeedbackNeeds) {
    this.#host = host;
    this.#needs = needs;
    this.notifications = new AnnotationNotifications(host.runtime, needs.feed);
  }

  /** Whether the caller can see the run. */
  async hasRun({ subject }: Caller, runId: string): Promise<boolean> {
    return (await this.#host.runtime.reader.row(subject, runId)) !== undefined;
  }

  /** Annotates a run as the caller. */
  annotate({ subject }: Caller, runId: string, given: AnnotationCreate): Promise<Change<Annotation> | Refusal> {
    const author = { principalRef: subject.principal, isAgent: false };
    return this.record({ visibility: subject, author, runId }, given);
  }

  /** Annotates a run. An annotation whose id is stored already stays as it is. */
  async record(annotating: Annotating, given: AnnotationCreate): Promise<Change<Annotation> | Refusal> {
    const { reader, clock, ids } = this.#host.runtime;
    const { visibility, author, runId } = annotating;
    const run = await reader.row(visibility, runId);
    if (!run) return NOT_FOUND;
    if (factsOf(run).fork?.preview !== undefined) return OF_PREVIEW;
    const refusal = checkSignal(given.signal) ?? (await this.#checkTarget(run, given));
    if (refusal) return refusal;
    const stored = annotating.annotationId && (await this.#find(run, annotating.annotationId));
    if (stored) return unchanged(stored);
    const annotationId = annotating.annotationId ?? ids.next('ann-');
    const facts: AnnotationFacts = { annotationId, runId, author, at: clock.now() };
    const annotation = annotationOf(given, facts);
    const row = rowOf(annotation, run, facts);
    return changeOf(annotation, [...this.#writesFor(annotation, row), ...this.#reactionsTo(annotation, run, author)], {
      // It fails when the annotation is stored already, or when its run has expired: the next decision sees which.
      retryOn: ['annotation'],
      announce: [() => this.notifications.publish(row)],
    });
  }

  async *pages({ tenant, run_id }: Pick<RunRow, 'tenant' | 'run_id'>): AsyncGenerator<ListedAnnotationRow[]> {
    const { store } = this.#host.runtime;
    for (let after = BEFORE_ALL; ; ) {
      const rows = await store.read<ListedAnnotationRow>(listAnnotations(tenant, run_id, after, PAGE));
      if (rows.length > 0) yield rows;
      if (rows.length < PAGE) return;
      after = rows.at(-1)!;
    }
  }

  async annotationsOf({ subject, scopes }: Caller, runId: string): Promise<Annotation[]> {
    const row = scopes.has('feedback:read') ? await this.#host.runtime.reader.row(subject, runId) : undefined;
    const all: Annotation[] = [];
    let characters = 0;
    for await (const page of row ? this.pages(row) : []) {
      all.push(...page.map(({ body }) => JSON.parse(body) as Annotation));
      characters += page.reduce((sum, { body }) => sum + body.length, 0);
      if (all.length >= EXPORTED_MAX || characters >= EXPORTED_CHARS_MAX) break;
    }
    return all;
  }

  async corrections(tenant: string, after: AnnotationPlace, limit: number): Promise<Correction[]> {
    const rows = await this.#host.runtime.store.read<AnnotationRow>(listCorrections(tenant, PEOPLE, after, limit));
    return rows.map((row) => ({ ...row, target: targetFrom(row.target) }));
  }

  async corrected(tenant: string, runIds: readonly string[]): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for (let from = 0; from < runIds.length; from += RUNS_AT_ONCE) {
      const some = runIds.slice(from, from + RUNS_AT_ONCE);
      const rows = await this.#host.runtime.store.read<{ run_id: string }>(findCorrected(tenant, PEOPLE, some));
      for (const { run_id } of rows) found.add(run_id);
    }
    return found;
  }

  async opinions(tenant: string, runIds: readonly string[]): Promise<ReadonlyMap<string, RunOpinion>> {
    if (runIds.length === 0) return new Map();
    const { store } = this.#host.runtime;
    const quality = await store.read<QualityRow>(findQuality(tenant, runIds));
    const labels = await store.read<Pick<AnnotationRow, 'run_id' | 'body'>>(findLabels(tenant, runIds));
    return opinionsFrom(quality, labels);
  }

  /** The quality of runs in numbers. */
  summary(request: SummaryRequest): Promise<FeedbackSummary | Refusal> {
    return summarize(this.#host.runtime, request);
  }

  /** Refuses an annotation of an event or node that the run does not have. */
  async #checkTarget(run: RunRow, { target = {} }: AnnotationCreate): Promise<Refusal | undefined> {
    const { eventId, nodeId } = target;
    if (eventId !== undefined) {
      const sequence = sequenceOf(eventId);
      const isOfRun = eventIdOf(run.run_id, sequence) === eventId && sequence <= run.sequence;
      if (!isOfRun) return refuse('validation_error', 'The run has no such event.', { field: 'target.eventId' });
    }
    if (nodeId === undefined) return undefined;
    const { plans } = this.#host.runtime;
    const plan = await plans.pinned(run.workflow_owner, run.workflow_id, run.workflow_version);
    if (plan.node(nodeId)) return undefined;
    return refuse('validation_error', 'The run has no such node.', { field: 'target.nodeId' });
  }

  async #find({ tenant, run_id }: RunRow, annotationId: string): Promise<Annotation | undefined> {
    const { store } = this.#host.runtime;
    const [row] = await store.read<{ body: string }>(findAnnotation(tenant, run_id, annotationId));
    return row && (JSON.parse(row.body) as Annotation);
  }

  #writesFor(annotation: Annotation, row: AnnotationRow): Unit {
    const { kind } = row;
    const review = reviewOf(annotation.signal);
    const isRating = kind === 'rating';
    return [
      markRun(row, { annotated: true, corrected: kind === 'correction', flagged: kind === 'flag' }),
      ...(isRating ? [countRating(row), withdrawReview(row)] : []),
      insertAnnotation(row),
      ...(review && 'asks' in review ? [insertReview(row, review.asks)] : []),
      ...(review && 'closes' in review ? [closeReviews(row)] : []),
      ...this.#auditEntry(annotation, row),
      ...this.#feedEntries(annotation, row, isRating || review !== undefined),
    ];
  }

  #auditEntry({ annotationId, actor }: Annotation, { tenant, workspace, run_id: target, kind }: AnnotationRow): Unit {
    return this.#needs.audit.record({
      tenant,
      workspace: workspace ?? undefined,
      actor: actor.principalRef,
      action: 'run.annotate',
      target,
      details: { annotationId, kind },
    });
  }

  #feedEntries(annotation: Annotation, row: AnnotationRow, changesInbox: boolean): Unit {
    const { tenant, workspace, run_id: runId, workflow_id: workflowId } = row;
    const { annotationId } = annotation;
    return this.#needs.feed.entries({ tenant, workspace: workspace ?? undefined }, [
      { event: RUN_ANNOTATED, data: { runId, workflowId, annotationId, annotation } },
      ...(changesInbox ? [{ event: 'inbox.changed', data: {} } as const] : []),
    ]);
  }

  /** What other capabilities write because of an annotation by a person. */
  #reactionsTo(annotation: Annotation, { tenant }: RunRow, { isAgent }: Author): Unit {
    if (isAgent) return [];
    return this.#host.extensions(AnnotationReactions).flatMap((reaction) => reaction(tenant, annotation));
  }
}
