import { MANAGEMENT_IDS } from '../../../protocol/running/management.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Param, Statement } from '../../../store/sql.ts';

/** Whose runs are counted. The host's own are left out unless they are asked for. */
export interface Counted extends Visibility {
  readonly workflowId?: string | undefined;
}

/** Runs that were started in some time: ids of runs sort by it. */
export interface IdRange {
  readonly from: string;
  readonly before: string;
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
 * Everything is counted of all runs first, which indexes answer, and what live runs have of it is taken away: there
 * are few of those.
 */
export function figuresOf({ tenant, workspace, workflowId }: Counted, { from, before }: IdRange): Statement {
  const params: Param[] = [tenant, from, before];
  const here = workspace === undefined ? IN_RANGE : `${IN_RANGE} AND workspace = $${params.push(workspace)}`;
  const workflow = workflowId === undefined ? undefined : `= $${params.push(workflowId)}`;
  const started = workflow
    ? `(SELECT COUNT(*) FROM runs WHERE ${here} AND workflow_id ${workflow})`
    : // How many there are, an index knows by itself; to ask each for its workflow would take longer.
      `(SELECT COUNT(*) FROM runs WHERE ${here}) - (SELECT COUNT(*) FROM runs WHERE ${here} AND workflow_id IN ${MANAGEMENT_IDS})`;
  const sums = SUMMED.map((name) => `COALESCE(CAST(SUM(${name}) AS BIGINT), 0) AS ${name}`).join(', ');
  // Behind an expression the workflow is no reason to choose its index: live runs are to be found by their own.
  const live = `SELECT tenant AS live_tenant, run_id AS live_id FROM runs
                WHERE ${here} AND ended_at IS NULL AND workflow_id || '' ${workflow ?? `NOT IN ${MANAGEMENT_IDS}`}`;
  return {
    sql: `SELECT ${['runs', ...SUMMED].map((name) => `every.${name} - live.${name} AS ${name}`).join(', ')}
          FROM (SELECT ${started} AS runs, ${sums} FROM run_quality
                WHERE ${here} AND ${workflow ? `workflow_id ${workflow}` : 'is_ours = 0'}) every,
               (SELECT COUNT(*) AS runs, ${sums} FROM (${live}) live_runs
                LEFT JOIN run_quality ON tenant = live_tenant AND run_id = live_id) live`,
    params,
  };
}

export interface CorrectionRow {
  readonly workflow_id: string;
  /** Null where a run was corrected as a whole. */
  readonly node_id: string | null;
  readonly corrections: number;
}

/** How often each node was corrected, in runs of any state. */
export function correctionsOf(counted: Counted, { from, before }: IdRange): Statement {
  return countCorrections(counted, IN_RANGE, [counted.tenant, from, before]);
}

/** The same of live runs alone, which are few. Their annotations are to be found by run and by nothing else. */
export function liveCorrectionsOf(counted: Counted, { from, before }: IdRange): Statement {
  const live = `run_id IN (SELECT run_id FROM runs WHERE ${IN_RANGE} AND ended_at IS NULL) AND tenant || '' = $1`;
  return countCorrections(counted, live, [counted.tenant, from, before]);
}

function countCorrections({ workspace, workflowId }: Counted, runs: string, params: Param[]): Statement {
  const where = [runs, `kind = 'correction'`];
  if (workflowId !== undefined) where.push(`workflow_id = $${params.push(workflowId)}`);
  if (workspace !== undefined) where.push(`workspace = $${params.push(workspace)}`);
  return {
    sql: `SELECT workflow_id, node_id, COUNT(*) AS corrections FROM annotations WHERE ${where.join(' AND ')}
          GROUP BY workflow_id, node_id`,
    params,
  };
}
