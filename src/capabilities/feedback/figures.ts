import { MANAGEMENT_WORKFLOWS } from '../../protocol/management.ts';
import type { Visibility } from '../../store/log.ts';
import type { Param, Statement } from '../../store/sql.ts';

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
const OURS = `(${MANAGEMENT_WORKFLOWS.map((id) => `'${id}'`).join(', ')})`;
const IN_RANGE = 'tenant = $1 AND run_id >= $2 AND run_id < $3';

/** Conditions on columns that runs and everything that is kept about them have in common. */
interface Conditions {
  readonly isCounted: string;
  /** The same of all workflows, the host's own included. */
  readonly isHere: string;
  readonly params: Param[];
}

/** \`column\` is how to name the workflow: behind an expression, no index is chosen for its sake. */
function conditionsOf(
  { tenant, workspace, workflowId }: Counted,
  { from, before }: IdRange,
  column = 'workflow_id',
): Conditions {
  const params: Param[] = [tenant, from, before];
  const workflow = workflowId === undefined ? `NOT IN ${OURS}` : `= $${params.push(workflowId)}`;
  const place = workspace === undefined ? '' : ` AND workspace = $${params.push(workspace)}`;
  return { isCounted: `${IN_RANGE} AND ${column} ${workflow}${place}`, isHere: `${IN_RANGE}${place}`, params };
}

/**
 * Everything is counted of all runs first, which indexes answer, and what live runs have of it is taken away: there
 * are few of those.
 */
export function figuresOf(counted: Counted, range: IdRange): Statement {
  const { isCounted, isHere, params } = conditionsOf(counted, range);
  // Live runs are to be found by their own index: a workflow may have had any number of runs.
  const { isCounted: isLiveCounted } = conditionsOf(counted, range, `workflow_id || ''`);
  // How many there are of all workflows, an index knows by itself; to look at each of them would take longer.
  const started =
    counted.workflowId === undefined
      ? `(SELECT COUNT(*) FROM runs WHERE ${isHere})
         - (SELECT COUNT(*) FROM runs WHERE ${isHere} AND workflow_id IN ${OURS})`
      : `(SELECT COUNT(*) FROM runs WHERE ${isCounted})`;
  const sums = SUMMED.map((name) => `COALESCE(CAST(SUM(${name}) AS BIGINT), 0) AS ${name}`).join(', ');
  const live = `SELECT tenant AS live_tenant, run_id AS live_id FROM runs WHERE ${isLiveCounted} AND ended_at IS NULL`;
  return {
    sql: `SELECT ${['runs', ...SUMMED].map((name) => `every.${name} - live.${name} AS ${name}`).join(', ')}
          FROM (SELECT ${started} AS runs, ${sums} FROM run_quality WHERE ${isCounted}) every,
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

/** How often each node was corrected, in runs that have ended. */
export function correctionsOf(counted: Counted, range: IdRange): Statement {
  const { isCounted, params } = conditionsOf(counted, range);
  return {
    sql: `SELECT workflow_id, node_id, COUNT(*) AS corrections FROM annotations
          WHERE ${isCounted} AND kind = 'correction'
            AND run_id NOT IN (SELECT run_id FROM runs WHERE ${IN_RANGE} AND ended_at IS NULL)
          GROUP BY workflow_id, node_id`,
    params,
  };
}
