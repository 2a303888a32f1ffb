import { MANAGEMENT_WORKFLOWS } from '../protocol/running/management.ts';
import { isTerminalStatus } from '../protocol/running/run-status.ts';
import { LISTED_COLUMNS, type Visibility } from './log.ts';
import type { Param, Statement } from './sql.ts';

/** The criteria for listing runs; an omitted one does not filter. */
export interface RunFilter {
  readonly status?: string | undefined;
  /** If omitted, management runs (the host's own runs behind goals and proposals) are excluded. */
  readonly workflowId?: string | undefined;
  readonly tag?: string | undefined;
  /** Inclusive lower bound. Run ids sort by creation time, so a time range is an id range. */
  readonly fromId?: string | undefined;
  /** Runs that nodes of other runs started, or those that they did not. */
  readonly isChild?: boolean | undefined;
  /** Sets of runs that a listed run has to be in, or must not be in. */
  readonly among?: readonly RunSet[];
  /** Exclusive upper bound: the cursor of the page before. */
  readonly beforeId?: string | undefined;
}

/** A SELECT of run ids of the tenant `$1`, to include (`isWanted`) or to exclude. Undefined selects none. */
export interface RunSet {
  readonly select: string | undefined;
  readonly isWanted: boolean;
}

/** The ids of runs that are forks, as a subquery; its statement passes the tenant as `$1`. */
export const FORKED_RUNS = 'SELECT run_id FROM run_forks WHERE tenant = $1';

function amongRuns({ select, isWanted }: RunSet): string {
  if (select === undefined) return isWanted ? '1 = 0' : '1 = 1';
  return `run_id ${isWanted ? 'IN' : 'NOT IN'} (${select})`;
}

/** Whether runs with this status have not ended. */
function isLive(status: string | undefined): boolean {
  return status !== undefined && !isTerminalStatus(status);
}

/** The workflow's id as no index has it: its live runs are found sooner among all live runs than among all of its own. */
const UNINDEXED_WORKFLOW = `(workflow_id || '')`;

/** What a status says anyway, in the words of the index that has only such runs: those of the other statuses are many. */
function indexedBy(status: string | undefined): string[] {
  if (status === undefined || status === 'completed') return [];
  return isLive(status) ? ['ended_at IS NULL'] : ['ended_at IS NOT NULL', `status <> 'completed'`];
}

/** The workflows of management runs as an SQL list, for `workflow_id NOT IN`. */
export const MANAGEMENT_IDS = `(${MANAGEMENT_WORKFLOWS.map((id) => `'${id}'`).join(', ')})`;

/** Where listed runs come from. */
interface ListedFrom {
  readonly tables: string;
  /** The column with their ids that is read in order. */
  readonly id: string;
  readonly conditions: readonly string[];
}

/**
 * A tag alone is read in the order of its runs, up to the last one of the page. Beside a status or a workflow, whose runs
 * may be few among those with the tag, all runs with the tag are collected first.
 */
function listedFrom({ tag, status, workflowId }: RunFilter, place: (value: Param) => string): ListedFrom {
  const all = { tables: 'runs', id: 'run_id' };
  if (tag === undefined) return { ...all, conditions: [] };
  const tagged = `FROM run_tags WHERE tenant = $1 AND tag = ${place(JSON.stringify(tag))}`;
  if (status !== undefined || workflowId !== undefined)
    return { ...all, conditions: [`run_id IN (SELECT run_id ${tagged})`] };
  // SQLite reads the tables of a CROSS JOIN in this order.
  const tables = `(SELECT run_id AS tagged_id ${tagged}) AS tagged CROSS JOIN runs`;
  return { tables, id: 'tagged_id', conditions: ['run_id = tagged_id'] };
}

/** Lists the visible runs that match a filter, newest first. */
export function listRuns({ tenant, workspace }: Visibility, filter: RunFilter, limit: number): Statement {
  const params: Param[] = [tenant];
  const place = (value: Param): string => `$${params.push(value)}`;
  const { tables, id, conditions } = listedFrom(filter, place);
  const where = ['tenant = $1', ...conditions];
  const add = (condition: (place: string) => string, value: Param | undefined): void => {
    if (value !== undefined) where.push(condition(place(value)));
  };
  add((place) => `workspace = ${place}`, workspace);
  add((place) => `status = ${place}`, filter.status);
  where.push(...indexedBy(filter.status));
  add((place) => `${isLive(filter.status) ? UNINDEXED_WORKFLOW : 'workflow_id'} = ${place}`, filter.workflowId);
  if (filter.workflowId === undefined) where.push(`workflow_id NOT IN ${MANAGEMENT_IDS}`);
  add((place) => `${id} >= ${place}`, filter.fromId);
  add((place) => `${id} < ${place}`, filter.beforeId);
  if (filter.isChild !== undefined) where.push(`parent_run_id IS ${filter.isChild ? 'NOT NULL' : 'NULL'}`);
  where.push(...(filter.among ?? []).map(amongRuns));
  return {
    sql: `SELECT ${LISTED_COLUMNS} FROM ${tables} WHERE ${where.join(' AND ')} ORDER BY ${id} DESC LIMIT ${place(limit)}`,
    params,
  };
}
