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

/** Conditions on columns that runs and what is kept about them have in common. */
interface Conditions {
  /** On run and tenant alone, which an index answers by itself. */
  readonly inRange: (table: string) => string;
  readonly all: (table: string) => string;
  readonly params: Param[];
}

function conditionsOf({ tenant, workspace, workflowId }: Counted, { from, before }: IdRange): Conditions {
  const params: Param[] = [tenant, from, before];
  const inRange = (table: string): string => `${table}.tenant = $1 AND ${table}.run_id >= $2 AND ${table}.run_id < $3`;
  const workflow = workflowId === undefined ? `NOT IN ${OURS}` : `= $${params.push(workflowId)}`;
  const place = workspace === undefined ? undefined : `$${params.push(workspace)}`;
  const all = (table: string): string =>
    `${inRange(table)} AND ${table}.workflow_id ${workflow}${place ? ` AND ${table}.workspace = ${place}` : ''}`;
  return { inRange, all, params };
}

/**
 * Everything is counted of all runs first, which indexes answer, and what live runs have of it is taken away: there
 * are few of those.
 */
export function figuresOf(counted: Counted, range: IdRange): Statement {
  const { inRange, all, params } = conditionsOf(counted, range);
  // Without a filter the shortest index knows how many there are; looking at each for its workflow would take longer.
  const isPlain = counted.workflowId === undefined && counted.workspace === undefined;
  const started = isPlain
    ? `(SELECT COUNT(*) FROM runs WHERE ${inRange('runs')})
       - (SELECT COUNT(*) FROM runs WHERE ${inRange('runs')} AND runs.workflow_id IN ${OURS})`
    : `(SELECT COUNT(*) FROM runs WHERE ${all('runs')})`;
  const sums = SUMMED.map((name) => `COALESCE(CAST(SUM(run_quality.${name}) AS BIGINT), 0) AS ${name}`).join(', ');
  return {
    sql: `SELECT ${['runs', ...SUMMED].map((name) => `every.${name} - live.${name} AS ${name}`).join(', ')}
          FROM (SELECT ${started} AS runs, ${sums} FROM run_quality WHERE ${all('run_quality')}) every,
               (SELECT COUNT(*) AS runs, ${sums} FROM runs LEFT JOIN run_quality
                  ON run_quality.tenant = runs.tenant AND run_quality.run_id = runs.run_id
                WHERE ${all('runs')} AND runs.ended_at IS NULL) live`,
    params,
  };
}

export interface CorrectionRow {
  readonly workflow_id: string;
  readonly node_id: string;
  readonly corrections: number;
}

/** Nodes that were corrected most, in runs that have ended. */
export function mostCorrectedNodes(counted: Counted, range: IdRange, limit: number): Statement {
  return mostCorrected(counted, range, ['workflow_id', 'node_id'], limit);
}

/** Workflows that were corrected most, as a whole or in one of their nodes. */
export function mostCorrectedWorkflows(counted: Counted, range: IdRange, limit: number): Statement {
  return mostCorrected(counted, range, ['workflow_id'], limit);
}

function mostCorrected(counted: Counted, range: IdRange, columns: readonly string[], limit: number): Statement {
  const { all, params } = conditionsOf(counted, range);
  const names = columns.map((name) => `annotations.${name}`).join(', ');
  const isOne = `${all('annotations')} AND annotations.kind = 'correction'
                 ${columns.includes('node_id') ? 'AND annotations.node_id IS NOT NULL' : ''}`;
  const live = `SELECT ${names}, COUNT(*) AS corrections FROM runs JOIN annotations
                  ON annotations.run_id = runs.run_id AND ${isOne}
                WHERE ${all('runs')} AND runs.ended_at IS NULL GROUP BY ${names}`;
  return {
    sql: `SELECT ${columns.map((name) => `every.${name}`).join(', ')},
            every.corrections - COALESCE(live.corrections, 0) AS corrections
          FROM (SELECT ${names}, COUNT(*) AS corrections FROM annotations WHERE ${isOne} GROUP BY ${names}) every
          LEFT JOIN (${live}) live ON ${columns.map((name) => `live.${name} = every.${name}`).join(' AND ')}
          WHERE every.corrections > COALESCE(live.corrections, 0)
          ORDER BY corrections DESC, ${columns.map((name) => `every.${name}`).join(', ')}
          LIMIT $${params.push(limit)}`,
    params,
  };
}
