import { NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import {
  type Annotation,
  type AnnotationCreate,
  type FeedbackSummary,
  RUN_ANNOTATED,
} from '../../../protocol/people/annotations.ts';
import { commitAll, UnitRefused } from '../../../runtime/command.ts';
import { eventIdOf, sequenceOf } from '../../../runtime/recording.ts';
import type { RunRow, Visibility } from '../../../store/log.ts';
import type { Unit, Write } from '../../../store/sql.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { FeedService } from '../../operations/feed/service.ts';
import type { Caller } from '../../request.ts';
import type { Audit } from '../../trust/audit/door.ts';
import { agentSeam } from './agents.ts';
import {
  type AnnotationPlace,
  type AnnotationRow,
  closeReviews,
  countRating,
  FLAGGED_RUNS,
  findAnnotation,
  insertAnnotation,
  insertReview,
  listAnnotations,
  listCorrections,
  listReviews,
  markRun,
  type ReviewRow,
  withdrawReview,
} from './records.ts';
import { type Author, annotationOf, authorKey, checkSignal, reviewOf, targetFrom, targetKey } from './rules.ts';
import { type SummaryRequest, summarize } from './summary.ts';

export type FeedbackService = ReturnType<typeof feedbackService>;

/** Topic of the hints that an annotation was recorded. */
const TOPIC = 'annotation';
const PAGE = 500;
/** More than any export has room for. */
const EXPORTED_MAX = 10_000;
const BEFORE_ALL: AnnotationPlace = { created_at: -1, annotation_id: '' };

/** Who judges which run, and on whose behalf. */
export interface Judging {
  readonly visibility: Visibility;
  readonly author: Author;
  readonly runId: string;
  /** The same for every attempt, where there may be several. */
  readonly annotationId?: string;
}

/** Where a person has corrected what. */
export interface Correction extends AnnotationPlace, Pick<AnnotationRow, 'run_id' | 'workspace' | 'workflow_id'> {
  readonly target: Pick<Annotation['target'], 'eventId' | 'nodeId'>;
}

type Also = (annotation: Annotation) => Unit;

/** What else follows from what a person thinks of a run, in the same transaction. */
export type Heed = (tenant: string, annotation: Annotation) => Unit;

export interface FeedbackNeeds {
  readonly audit: Audit;
  readonly feed: FeedService;
}

export function feedbackService(host: Host, { audit, feed }: FeedbackNeeds) {
  const { runtime } = host;
  const { store, clock, ids, hub, plans, reader } = runtime;

  const heeding: Heed[] = [];

  hub.onHint(TOPIC, (about) => void retell(about));

  return {
    isThere: async ({ subject }: Caller, runId: string): Promise<boolean> =>
      (await reader.row(subject, runId)) !== undefined,

    annotate: (
      { subject }: Caller,
      runId: string,
      given: AnnotationCreate,
      also: Also,
    ): Promise<Annotation | Refusal> =>
      record({ visibility: subject, author: { principalRef: subject.principal, isAgent: false }, runId }, given, also),

    /** What is behind the node by which agents judge. */
    seam: agentSeam(runtime, (judging, given) => record(judging, given, () => [])),

    /** The annotations of a run, oldest first, as JSON texts in pages, with the ids of those that are superseded. */
    pages,

    /** All of them, for whoever exports the run; nothing for those who may not read them. */
    async annotationsOf({ subject, scopes }: Caller, runId: string): Promise<Annotation[]> {
      const row = scopes.has('feedback:read') ? await reader.row(subject, runId) : undefined;
      const all: Annotation[] = [];
      for await (const page of row ? pages(row) : []) {
        all.push(...page.map(({ body }) => JSON.parse(body) as Annotation));
        if (all.length >= EXPORTED_MAX) break;
      }
      return all;
    },

    /** What people have corrected in a tenant since some place, oldest first. */
    async corrections(tenant: string, after: AnnotationPlace, limit: number): Promise<Correction[]> {
      const people = authorKey({ principalRef: '', isAgent: false });
      const rows = await store.read<AnnotationRow>(listCorrections(tenant, people, after, limit));
      return rows.map((row) => ({ ...row, target: targetFrom(row.target) }));
    },

    /** For those to whom it makes a difference what people think. */
    onOpinion: (heed: Heed): void => void heeding.push(heed),

    /** A SELECT of the runs that somebody flagged, for whoever lists runs. */
    flaggedRuns: FLAGGED_RUNS,

    summary: (request: SummaryRequest): Promise<FeedbackSummary | Refusal> => summarize(runtime, request),

    /** Runs that somebody should look at. */
    reviews: (
      visibility: Visibility,
      before: { readonly at: number; readonly id: string } | undefined,
      limit: number,
    ): Promise<ReviewRow[]> => store.read<ReviewRow>(listReviews(visibility, before, limit)),
  };

  async function record(judging: Judging, given: AnnotationCreate, also: Also): Promise<Annotation | Refusal> {
    const { visibility, author, runId, annotationId = ids.next('ann-') } = judging;
    const run = await reader.row(visibility, runId);
    if (!run) return NOT_FOUND;
    const refusal = checkSignal(given.signal) ?? (await checkTarget(run, given));
    if (refusal) return refusal;
    const at = clock.now();
    const annotation = annotationOf(given, { annotationId, runId, author, at });
    const row = rowOf(annotation, run, author, at);
    try {
      await commitAll(store, [
        ...writesFor(annotation, row),
        ...(author.isAgent ? [] : heeding.flatMap((heed) => heed(run.tenant, annotation))),
        ...also(annotation),
      ]);
    } catch (error) {
      if (!(error instanceof UnitRefused) || error.broke !== 'annotation') throw error;
      return (await found(run, annotationId)) ?? NOT_FOUND;
    }
    tell(row);
    return annotation;
  }

  /** Whether what is judged is part of the run. */
  async function checkTarget(run: RunRow, { target = {} }: AnnotationCreate): Promise<Refusal | undefined> {
    const { eventId, nodeId } = target;
    if (eventId !== undefined) {
      const sequence = sequenceOf(eventId);
      const isOurs = eventIdOf(run.run_id, sequence) === eventId && sequence <= run.sequence;
      if (!isOurs) return refuse('validation_error', 'The run has no such event.', { field: 'target.eventId' });
    }
    if (nodeId === undefined) return undefined;
    const plan = await plans.pinned(run.workflow_owner, run.workflow_id, run.workflow_version);
    if (plan.node(nodeId)) return undefined;
    return refuse('validation_error', 'The run has no such node.', { field: 'target.nodeId' });
  }

  function writesFor(annotation: Annotation, row: AnnotationRow): Write[] {
    const { tenant, workspace, run_id, workflow_id, kind } = row;
    const { annotationId, actor } = annotation;
    const review = reviewOf(annotation.signal);
    const isRating = kind === 'rating';
    return [
      markRun(row, { annotated: true, corrected: kind === 'correction', flagged: kind === 'flag' }),
      ...(isRating ? [countRating(row), withdrawReview(row)] : []),
      insertAnnotation(row),
      ...(review && 'asks' in review ? [insertReview(row, review.asks)] : []),
      ...(review && 'closes' in review ? [closeReviews(row)] : []),
      ...audit.record({
        tenant,
        workspace: workspace ?? undefined,
        actor: actor.principalRef,
        action: 'run.annotate',
        target: run_id,
        details: { annotationId, kind },
      }),
      ...feed.entries({ tenant, workspace: workspace ?? undefined }, [
        { event: RUN_ANNOTATED, data: { runId: run_id, workflowId: workflow_id, annotationId, annotation } },
        ...(review || isRating ? [{ event: 'inbox.changed', data: {} } as const] : []),
      ]),
    ];
  }

  /** To those who follow the run or the tenant now, here and on other hosts. */
  function tell({ tenant, run_id, annotation_id, body }: AnnotationRow): void {
    hub.notice(run_id, { event: RUN_ANNOTATED, data: body });
    store.hint([`${TOPIC}:${run_id}:${annotation_id}:${tenant}`]);
    feed.wake(tenant);
  }

  /** Tells here what was recorded on another host, if somebody listens. */
  async function retell(about: string): Promise<void> {
    const [runId = '', annotationId = '', ...tenant] = about.split(':');
    if (!hub.isNoticed(runId)) return;
    try {
      const [row] = await store.read<{ body: string }>(findAnnotation(tenant.join(':'), runId, annotationId));
      if (row) hub.notice(runId, { event: RUN_ANNOTATED, data: row.body });
    } catch (error) {
      runtime.log.warn({ runId, err: error }, 'could not read an annotation; streams do not show it, the list does');
    }
  }

  async function found({ tenant, run_id }: RunRow, annotationId: string): Promise<Annotation | undefined> {
    const [row] = await store.read<{ body: string }>(findAnnotation(tenant, run_id, annotationId));
    return row && (JSON.parse(row.body) as Annotation);
  }

  async function* pages({ tenant, run_id }: Pick<RunRow, 'tenant' | 'run_id'>): AsyncGenerator<AnnotationRow[]> {
    for (let after = BEFORE_ALL; ; ) {
      const rows = await store.read<AnnotationRow>(listAnnotations(tenant, run_id, after, PAGE));
      if (rows.length > 0) yield rows;
      if (rows.length < PAGE) return;
      after = rows.at(-1)!;
    }
  }
}

function rowOf(annotation: Annotation, run: RunRow, author: Author, at: number): AnnotationRow {
  const { annotationId, target, signal } = annotation;
  return {
    annotation_id: annotationId,
    tenant: run.tenant,
    workspace: run.workspace,
    run_id: run.run_id,
    workflow_id: run.workflow_id,
    node_id: target.nodeId ?? null,
    target: targetKey(target),
    author: authorKey(author),
    kind: signal.kind,
    rating: signal.kind === 'rating' ? signal.rating! : null,
    created_at: at,
    body: JSON.stringify(annotation),
  };
}
