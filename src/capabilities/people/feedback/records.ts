import type { Annotation } from '../../../protocol/people/annotations.ts';
import { isManagement } from '../../../protocol/running/management.ts';
import { TRIAL_TAG } from '../../../protocol/running/trials.ts';
import { type RunRef, taggedRuns, type Visibility } from '../../../store/log.ts';
import { type Param, placeholders, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

/** Annotations, what they add up to for each run, and the runs to review. */
export const FEEDBACK_TABLES: readonly Migration[] = [
  {
    id: 'feedback/0001',
    statements: [
      // Annotations are appended and never changed. \`body\` is the document that readers get.
      `CREATE TABLE annotations (
        annotation_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        workspace TEXT,
        run_id TEXT NOT NULL,
        workflow_id TEXT NOT NULL,
        node_id TEXT,
        target TEXT NOT NULL,
        author TEXT NOT NULL,
        kind TEXT NOT NULL,
        rating BIGINT,
        created_at BIGINT NOT NULL,
        body TEXT NOT NULL
      ) $clustered`,
      'CREATE INDEX annotations_by_run ON annotations (run_id, created_at, annotation_id)',
      `CREATE INDEX annotations_ratings ON annotations (run_id, author, target, created_at, annotation_id)
       WHERE kind = 'rating'`,
      `CREATE INDEX annotations_corrections ON annotations (tenant, workflow_id, node_id, run_id, workspace)
       WHERE kind = 'correction'`,
      // Totals for each run of its annotations and of the answers that it needed. Ids of runs sort by time.
      `CREATE TABLE run_quality (
        tenant TEXT NOT NULL,
        run_id TEXT NOT NULL,
        workspace TEXT,
        workflow_id TEXT NOT NULL,
        is_ours BIGINT NOT NULL,
        annotated BIGINT NOT NULL,
        corrected BIGINT NOT NULL,
        flagged BIGINT NOT NULL,
        intervened BIGINT NOT NULL,
        ratings BIGINT NOT NULL,
        rating_sum BIGINT NOT NULL,
        PRIMARY KEY (tenant, run_id)
      ) $clustered`,
      // Counts the runs of a workspace.
      'CREATE INDEX runs_by_workspace ON runs (tenant, workspace, run_id) WHERE workspace IS NOT NULL',
      'CREATE INDEX run_quality_flagged ON run_quality (tenant, run_id) WHERE flagged = 1',
      // Annotations that ask for a review of their run, until somebody has reviewed it.
      `CREATE TABLE reviews (
        annotation_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        workspace TEXT,
        run_id TEXT NOT NULL,
        workflow_id TEXT NOT NULL,
        node_id TEXT,
        target TEXT NOT NULL,
        author TEXT NOT NULL,
        kind TEXT NOT NULL,
        reason TEXT NOT NULL,
        created_at BIGINT NOT NULL
      ) $clustered`,
      'CREATE INDEX reviews_in_order ON reviews (tenant, created_at, annotation_id)',
      'CREATE INDEX reviews_by_run ON reviews (run_id, created_at, annotation_id)',
    ],
  },
  {
    id: 'feedback/0002',
    statements: [
      // Finds new corrections, for capabilities that learn from them.
      `CREATE INDEX annotations_corrections_in_order ON annotations (tenant, created_at, annotation_id)
       WHERE kind = 'correction'`,
    ],
  },
];

/** A row of the table of annotations. */
export interface AnnotationRow {
  readonly annotation_id: string;
  readonly tenant: string;
  readonly workspace: string | null;
  readonly run_id: string;
  readonly workflow_id: string;
  readonly node_id: string | null;
  readonly target: string;
  readonly author: string;
  readonly kind: Annotation['signal']['kind'];
  readonly rating: number | null;
  readonly created_at: number;
  readonly body: string;
}

const ANNOTATION_COLUMNS = [
  'annotation_id',
  'tenant',
  'workspace',
  'run_id',
  'workflow_id',
  'node_id',
  'target',
  'author',
  'kind',
  'rating',
  'created_at',
  'body',
] as const satisfies readonly (keyof AnnotationRow)[];

/** Expects that the annotation is new (a retry of an agent has the same id) and that its run has not expired. */
export function insertAnnotation(row: AnnotationRow): Write {
  const columns = ANNOTATION_COLUMNS.join(', ');
  const values = ANNOTATION_COLUMNS.map((_, index) => `$${index + 1}`).join(', ');
  return {
    sql: `INSERT INTO annotations (${columns})
          SELECT ${values} WHERE EXISTS (SELECT 1 FROM runs WHERE run_id = $4 AND tenant = $2)
          ON CONFLICT (annotation_id) DO NOTHING`,
    params: ANNOTATION_COLUMNS.map((column) => row[column]),
    expect: 1,
    expectation: 'annotation',
  };
}

/** The document of one annotation. */
export function findAnnotation(tenant: string, runId: string, annotationId: string): Statement {
  return sql(
    'SELECT body FROM annotations WHERE annotation_id = $1 AND run_id = $2 AND tenant = $3',
    annotationId,
    runId,
    tenant,
  );
}

/** A position in a list of annotations: oldest first, ties by id. */
export interface AnnotationPlace {
  readonly created_at: number;
  readonly annotation_id: string;
}

/** The columns that lists of annotations have. */
export type ListedAnnotationRow = Pick<
  AnnotationRow,
  'annotation_id' | 'target' | 'author' | 'kind' | 'created_at' | 'body'
>;

/** Annotations of a run after a position, oldest first. */
export function listAnnotations(tenant: string, runId: string, after: AnnotationPlace, limit: number): Statement {
  return sql(
    `SELECT annotation_id, target, author, kind, created_at, body FROM annotations
     WHERE run_id = $1 AND tenant = $2 AND (created_at, annotation_id) > ($3, $4)
     ORDER BY created_at, annotation_id LIMIT $5`,
    runId,
    tenant,
    after.created_at,
    after.annotation_id,
    limit,
  );
}

/** Corrections in a tenant after a position, oldest first, by authors whose keys have a prefix; without those of trials. */
export function listCorrections(
  tenant: string,
  authorPrefix: string,
  after: AnnotationPlace,
  limit: number,
): Statement {
  return sql(
    `SELECT annotation_id, run_id, workspace, workflow_id, target, created_at FROM annotations
     WHERE tenant = $1 AND kind = 'correction' AND (created_at, annotation_id) > ($2, $3) AND author LIKE $4
       AND run_id NOT IN (${taggedRuns(TRIAL_TAG)})
     ORDER BY created_at, annotation_id LIMIT $5`,
    tenant,
    after.created_at,
    after.annotation_id,
    `${authorPrefix}%`,
    limit,
  );
}

/** Those of some runs that authors corrected whose keys have a prefix. */
export function findCorrected(tenant: string, authorPrefix: string, runIds: readonly string[]): Statement {
  return sql(
    `SELECT DISTINCT run_id FROM annotations
     WHERE tenant = $1 AND kind = 'correction' AND author LIKE $2 AND run_id IN ${placeholders(1, runIds.length, 3)}`,
    tenant,
    `${authorPrefix}%`,
    ...runIds,
  );
}

/** What is noted about the quality of a run, besides ratings. */
interface QualityMarks {
  readonly annotated?: boolean;
  readonly corrected?: boolean;
  readonly flagged?: boolean;
  readonly intervened?: boolean;
}

type RunPlace = Pick<AnnotationRow, 'tenant' | 'run_id' | 'workspace' | 'workflow_id'>;

/** Adds marks to a run; marks are never taken away. */
export function markRun({ tenant, run_id, workspace, workflow_id }: RunPlace, marks: QualityMarks): Write {
  const { annotated = false, corrected = false, flagged = false, intervened = false } = marks;
  return {
    sql: `INSERT INTO run_quality (tenant, run_id, workspace, workflow_id, is_ours, annotated, corrected, flagged,
            intervened, ratings, rating_sum)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0)
          ON CONFLICT (tenant, run_id) DO UPDATE SET
            annotated = run_quality.annotated | excluded.annotated,
            corrected = run_quality.corrected | excluded.corrected,
            flagged = run_quality.flagged | excluded.flagged,
            intervened = run_quality.intervened | excluded.intervened`,
    params: [
      tenant,
      run_id,
      workspace,
      workflow_id,
      ...[isManagement(workflow_id), annotated, corrected, flagged, intervened].map(Number),
    ],
  };
}

/**
 * Counts a rating, in place of an earlier one by the same author on the same target. It comes after `markRun`, which
 * holds the run's row, and before the rating itself: so of two that arrive together, the second sees the first.
 */
export function countRating({ tenant, run_id, author, target, rating }: AnnotationRow): Write {
  const earlier = `SELECT rating FROM annotations
                   WHERE run_id = $2 AND tenant = $1 AND kind = 'rating' AND author = $3 AND target = $4
                   ORDER BY created_at DESC, annotation_id DESC LIMIT 1`;
  return {
    sql: `UPDATE run_quality SET
            ratings = ratings + CASE WHEN EXISTS (${earlier}) THEN 0 ELSE 1 END,
            rating_sum = rating_sum + $5 - COALESCE((${earlier}), 0)
          WHERE tenant = $1 AND run_id = $2`,
    params: [tenant, run_id, author, target, rating],
  };
}

/** A row of the table of reviews. */
export interface ReviewRow extends Omit<AnnotationRow, 'rating' | 'body'> {
  readonly reason: string;
}

/** Asks for a review of a run. */
export function insertReview(row: AnnotationRow, reason: string): Write {
  return {
    sql: `INSERT INTO reviews (annotation_id, tenant, workspace, run_id, workflow_id, node_id, target, author, kind,
            reason, created_at)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    params: [
      row.annotation_id,
      row.tenant,
      row.workspace,
      row.run_id,
      row.workflow_id,
      row.node_id,
      row.target,
      row.author,
      row.kind,
      reason,
      row.created_at,
    ],
  };
}

/** Closes all reviews of a run. */
export function closeReviews({ tenant, run_id }: Pick<AnnotationRow, 'tenant' | 'run_id'>): Write {
  return { sql: 'DELETE FROM reviews WHERE run_id = $1 AND tenant = $2', params: [run_id, tenant] };
}

/** Withdraws the review that an earlier rating asked for, because its author has replaced the rating. */
export function withdrawReview({ tenant, run_id, author, target, kind }: AnnotationRow): Write {
  return {
    sql: `DELETE FROM reviews WHERE run_id = $1 AND tenant = $2 AND author = $3 AND target = $4 AND kind = $5`,
    params: [run_id, tenant, author, target, kind],
  };
}

/** Runs to review before a position, newest first, each by the latest annotation that asks for it. */
export function listReviews(
  { tenant, workspace }: Visibility,
  before: { readonly at: number; readonly id: string } | undefined,
  limit: number,
): Statement {
  const params: Param[] = [tenant];
  const where = ['tenant = $1'];
  if (workspace !== undefined) where.push(`workspace = $${params.push(workspace)}`);
  if (before) where.push(`(created_at, annotation_id) < ($${params.push(before.at)}, $${params.push(before.id)})`);
  const limited = `$${params.push(limit)}`;
  return {
    sql: `SELECT * FROM reviews WHERE ${where.join(' AND ')} AND NOT EXISTS (
            SELECT 1 FROM reviews later WHERE later.run_id = reviews.run_id
              AND (later.created_at, later.annotation_id) > (reviews.created_at, reviews.annotation_id))
          ORDER BY created_at DESC, annotation_id DESC LIMIT ${limited}`,
    params,
  };
}

/** The totals of a run that are an opinion on it. */
export interface QualityRow {
  readonly run_id: string;
  readonly flagged: number;
  readonly ratings: number;
  readonly rating_sum: number;
}

/** The totals of runs that people flagged or rated. */
export function findQuality(tenant: string, runIds: readonly string[]): Statement {
  return sql(
    `SELECT run_id, flagged, ratings, rating_sum FROM run_quality
     WHERE tenant = $1 AND run_id IN ${placeholders(1, runIds.length, 2)} AND (flagged = 1 OR ratings > 0)`,
    tenant,
    ...runIds,
  );
}

/** The labels of runs. */
export function findLabels(tenant: string, runIds: readonly string[]): Statement {
  return sql(
    `SELECT run_id, body FROM annotations
     WHERE tenant = $1 AND run_id IN ${placeholders(1, runIds.length, 2)} AND kind = 'label'`,
    tenant,
    ...runIds,
  );
}

/** Ids of the runs of the tenant `$1` that somebody flagged. */
export const FLAGGED_RUNS = 'SELECT run_id FROM run_quality WHERE tenant = $1 AND flagged = 1';

/** Deletes everything about a run. */
export function forgetFeedback({ tenant, runId }: RunRef): Write[] {
  return ['annotations', 'run_quality', 'reviews'].map((table) => ({
    sql: `DELETE FROM ${table} WHERE run_id = $1 AND tenant = $2`,
    params: [runId, tenant],
  }));
}
