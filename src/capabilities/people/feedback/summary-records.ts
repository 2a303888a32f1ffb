import { PREVIEW_TAG } from '../../../protocol/learning/previews.ts';
import { TRIAL_TAG } from '../../../protocol/running/trials.ts';
import { taggedRuns, type Visibility } from '../../../store/log.ts';
import { MANAGEMENT_IDS } from '../../../store/run-lists.ts';
import type { Param, Statement } from '../../../store/sql.ts';
import type { IdRange } from '../../periods.ts';

/** Which runs are counted. Management runs and trials are left out unless their workflow is named. */
export interface Counted extends Visibility {
  readonly workflowId?: string | undefined;
}

/** Sums over the runs of a range that have ended. */
export interface FigureRow {
  readonly runs: number;
  readonly annotated: number;
  readonly corrected: number;
  readonly flagged: number;
  readonly intervened: number;
  readonly ratings: number;
  readonly rating_sum: number;
}

const SUMMED = ['annotated', 'corrected', 'flagged', 'intervened', 'ratings', 'rating_sum'] as const;
const IN_RANGE = 'tenant = $1 AND run_id >= $2 AND run_id < $3';

/**
 * Sums over the runs of a range that have ended: the sums over all runs, which indexes answer, minus those over live
 * runs, of which there are few.
 */
export function figuresOf({ tenant, workspace, workflowId }: Counted, { from, before }: IdRange): Statement {
  const params: Param[] = [tenant, from, before];
  const here = workspace === undefined ? IN_RANGE : `${IN_RANGE} AND workspace = $${params.push(workspace)}`;
  const uncounted = uncountedRuns(workflowId);
  const workflow = workflowId === undefined ? undefined : `= $${params.push(workflowId)}`;
  const all = workflow
    ? `(SELECT COUNT(*) FROM runs WHERE ${here} AND workflow_id ${workflow})`
    : // Two counts that an index answers alone; filtering every run by its workflow would take longer.
      `(SELECT COUNT(*) FROM runs WHERE ${here}) - (SELECT COUNT(*) FROM runs WHERE ${here} AND workflow_id IN ${MANAGEMENT_IDS})`;
  const started = `${all} - (SELECT COUNT(*) FROM runs WHERE ${here} AND run_id IN (${uncounted})${workflow ? ` AND workflow_id ${workflow}` : ''})`;
  const sums = SUMMED.map((name) => `COALESCE(CAST(SUM(${name}) AS BIGINT), 0) AS ${name}`).join(', ');
  // The expression keeps the planner from the index on workflows: live runs have a smaller index of their own.
  const live = `SELECT tenant AS live_tenant, run_id AS live_id FROM runs
                WHERE ${here} AND ended_at IS NULL AND run_id NOT IN (${uncounted}) AND workflow_id || '' ${workflow ?? `NOT IN ${MANAGEMENT_IDS}`}`;
  return {
    sql: `SELECT ${['runs', ...SUMMED].map((name) => `every.${name} - live.${name} AS ${name}`).join(', ')}
          FROM (SELECT ${started} AS runs, ${sums} FROM run_quality
                WHERE ${here} AND ${workflow ? `workflow_id ${workflow}` : `is_ours = 0 AND run_id NOT IN (${uncounted})`}) every,
               (SELECT COUNT(*) AS runs, ${sums} FROM (${live}) live_runs
                LEFT JOIN run_quality ON tenant = live_tenant AND run_id = live_id) live`,
    params,
  };
}

/** Runs that only show what a draft would do, which nobody rates, and trials of nodes. */
function uncountedRuns(workflowId: string | undefined): string {
  return workflowId === undefined ? taggedRuns(PREVIEW_TAG, TRIAL_TAG) : taggedRuns(PREVIEW_TAG);
}

/** How often a node, or a workflow as a whole, was corrected. */
export interface CorrectionRow {
  readonly workflow_id: string;
  /** Null where a run was corrected as a whole. */
  readonly node_id: string | null;
  readonly corrections: number;
}

/** How often each node was corrected, in runs of any status. */
export function correctionsOf(counted: Counted, { from, before }: IdRange): Statement {
  return countCorrections(counted, IN_RANGE, [counted.tenant, from, before]);
}

/** The same in live runs alone. There are few, so the expression makes the planner find annotations by run. */
export function liveCorrectionsOf(counted: Counted, { from, before }: IdRange): Statement {
  const live = `run_id IN (SELECT run_id FROM runs WHERE ${IN_RANGE} AND ended_at IS NULL) AND tenant || '' = $1`;
  return countCorrections(counted, live, [counted.tenant, from, before]);
}

function countCorrections({ workspace, workflowId }: Counted, runs: string, params: Param[]): Statement {
  const where = [runs, `kind = 'correction'`];
  if (workflowId === undefined) where.push(`run_id NOT IN (${taggedRuns(TRIAL_TAG)})`);
  else where.push(`workflow_id = $${params.push(workflowId)}`);
  if (workspace !== undefined) where.push(`workspace = $${params.push(workspace)}`);
  return {
    sql: `SELECT workflow_id, node_id, COUNT(*) AS corrections FROM annotations WHERE ${where.join(' AND ')}
          GROUP BY workflow_id, node_id`,
    params,
  };
}
