import { MANAGEMENT_IDS } from '../protocol/running/management.ts';
import { type Param, placeholders, type Statement, sql, type Write } from './sql.ts';

/** Who may see what: a tenant, or one workspace of it. `tenant` is the storage key that auth makes, never a body's. */
export interface Visibility {
  readonly tenant: string;
  readonly workspace?: string | undefined;
}

export interface RunRow {
  readonly run_id: string;
  readonly tenant: string;
  readonly workspace: string | null;
  readonly principal: string;
  readonly issuer: string;
  readonly lane: string;
  readonly workflow_owner: string;
  readonly workflow_id: string;
  readonly workflow_version: number;
  readonly parent_run_id: string | null;
  readonly parent_node_id: string | null;
  readonly facts: string;
  readonly engine_version: number;
  readonly event_log_schema_version: number;
  readonly created_at: number;
  readonly status: string;
  readonly sequence: number;
  readonly updated_at: number;
  readonly ended_at: number | null;
  readonly error_code: string | null;
}

const RUN_COLUMNS = [
  'run_id',
  'tenant',
  'workspace',
  'principal',
  'issuer',
  'lane',
  'workflow_owner',
  'workflow_id',
  'workflow_version',
  'parent_run_id',
  'parent_node_id',
  'facts',
  'engine_version',
  'event_log_schema_version',
  'created_at',
  'status',
  'sequence',
  'updated_at',
  'ended_at',
  'error_code',
] as const satisfies readonly (keyof RunRow)[];

const INSERT_RUN = `INSERT INTO runs (${RUN_COLUMNS.join(', ')}) VALUES ${placeholders(1, RUN_COLUMNS.length)}`;

export function insertRun(row: RunRow): Write {
  return { sql: INSERT_RUN, params: RUN_COLUMNS.map((column) => row[column]) };
}

/** What the log now says about a run, for its row. */
export interface RunMove {
  readonly runId: string;
  readonly from: number;
  readonly to: number;
  readonly status: string;
  readonly updatedAt: number;
  readonly endedAt: number | null;
  readonly errorCode: string | null;
}

/** Refused when somebody else appended in between: sequences have no gaps and no doubles. */
export function moveRun(move: RunMove): Write {
  return {
    sql: `UPDATE runs SET sequence = $1, status = $2, updated_at = $3, ended_at = $4, error_code = $5
          WHERE run_id = $6 AND sequence = $7`,
    params: [move.to, move.status, move.updatedAt, move.endedAt, move.errorCode, move.runId, move.from],
    expect: 1,
    keeps: 'sequence',
  };
}

/** An event as it is kept: the bytes that every reader gets, and what only the fold may see. */
export interface StoredEvent {
  readonly sequence: number;
  readonly type: string;
  readonly body: string;
  readonly hidden: string | null;
}

const EVENT_COLUMNS = 5;
/** Rows per statement; the last statement of a long append has fewer. */
const EVENTS_PER_INSERT = 16;
/** The statement for so many rows. */
const INSERT_EVENTS = Array.from(
  { length: EVENTS_PER_INSERT + 1 },
  (_, rows) => `INSERT INTO events (run_id, sequence, type, body, hidden) VALUES ${placeholders(rows, EVENT_COLUMNS)}`,
);

export function insertEvents(runId: string, events: readonly StoredEvent[]): Write[] {
  const writes: Write[] = [];
  for (let start = 0; start < events.length; start += EVENTS_PER_INSERT) {
    const chunk = events.slice(start, start + EVENTS_PER_INSERT);
    writes.push({
      sql: INSERT_EVENTS[chunk.length]!,
      params: chunk.flatMap(({ sequence, type, body, hidden }): Param[] => [runId, sequence, type, body, hidden]),
    });
  }
  return writes;
}

export function findRun({ tenant, workspace }: Visibility, runId: string): Statement {
  if (workspace === undefined) return sql('SELECT * FROM runs WHERE run_id = $1 AND tenant = $2', runId, tenant);
  return sql('SELECT * FROM runs WHERE run_id = $1 AND tenant = $2 AND workspace = $3', runId, tenant, workspace);
}

/** Which of some runs may be seen from here. */
export function visibleRuns({ tenant, workspace }: Visibility, runIds: readonly string[]): Statement {
  const among = `SELECT run_id FROM runs WHERE tenant = $1 AND run_id IN ${placeholders(1, runIds.length, 3)}`;
  return sql(`${among} AND ($2 = '' OR workspace = $2)`, tenant, workspace ?? '', ...runIds);
}

export interface RunRef {
  readonly tenant: string;
  readonly runId: string;
}

export function readEvents({ tenant, runId }: RunRef, after: number, limit: number): Statement {
  return sql(
    `SELECT sequence, type, body, hidden FROM events
     WHERE run_id = $1 AND sequence > $2 AND EXISTS (SELECT 1 FROM runs WHERE run_id = $1 AND tenant = $3)
     ORDER BY sequence LIMIT $4`,
    runId,
    after,
    tenant,
    limit,
  );
}

export function childRuns({ tenant, runId }: RunRef): Statement {
  return sql('SELECT * FROM runs WHERE parent_run_id = $1 AND tenant = $2 ORDER BY run_id', runId, tenant);
}

export function childRunsAmong({ tenant, runId }: RunRef, childRunIds: readonly string[]): Statement {
  return sql(
    `SELECT * FROM runs WHERE parent_run_id = $1 AND tenant = $2 AND run_id IN ${placeholders(1, childRunIds.length, 3)}
     ORDER BY run_id`,
    runId,
    tenant,
    ...childRunIds,
  );
}

export function insertTags({ tenant, runId }: RunRef, tags: readonly string[]): Write[] {
  // Kept as JSON text: a tag may hold characters that a column cannot.
  return [...new Set(tags)].map((tag) => ({
    sql: 'INSERT INTO run_tags (tenant, tag, run_id) VALUES ($1, $2, $3)',
    params: [tenant, JSON.stringify(tag), runId],
  }));
}

/** How many runs there are below one that nobody else started. */
export function runsBelow({ tenant, runId }: RunRef): Statement {
  return sql('SELECT below FROM run_trees WHERE run_id = $1 AND tenant = $2', runId, tenant);
}

/** One more of them. */
export function countRunBelow({ tenant, runId }: RunRef): Write {
  return {
    sql: `INSERT INTO run_trees (run_id, tenant, below) VALUES ($1, $2, 1)
          ON CONFLICT (run_id) DO UPDATE SET below = run_trees.below + 1`,
    params: [runId, tenant],
  };
}

/** Takes a scope for a run; `exclusive` refuses the unit when a live run has it. */
export function takeScope(scopeKey: string, runId: string, exclusive: boolean): Write[] {
  return [
    {
      sql: `INSERT INTO scope_holders (scope_key, holders) VALUES ($1, 1)
            ON CONFLICT (scope_key) DO UPDATE SET holders = scope_holders.holders + 1
            ${exclusive ? 'WHERE scope_holders.holders = 0' : ''}`,
      params: [scopeKey],
      expect: 1,
      keeps: 'scope',
    },
    { sql: 'INSERT INTO live_scopes (scope_key, run_id) VALUES ($1, $2)', params: [scopeKey, runId] },
  ];
}

export function holderOfScope(scopeKey: string): Statement {
  return sql('SELECT run_id FROM live_scopes WHERE scope_key = $1 ORDER BY run_id LIMIT 1', scopeKey);
}

/** Once for each run that took the scope. */
export function freeScope(scopeKey: string, runId: string): Write[] {
  return [
    { sql: 'UPDATE scope_holders SET holders = holders - 1 WHERE scope_key = $1', params: [scopeKey] },
    { sql: 'DELETE FROM scope_holders WHERE scope_key = $1 AND holders = 0', params: [scopeKey] },
    { sql: 'DELETE FROM live_scopes WHERE scope_key = $1 AND run_id = $2', params: [scopeKey, runId] },
  ];
}

export interface RunFilter {
  readonly status?: string | undefined;
  /** Without it, runs of the host's own are left out. */
  readonly workflowId?: string | undefined;
  readonly tag?: string | undefined;
  /** Run ids sort by time, so a window of time is a window of ids. */
  readonly fromId?: string | undefined;
  /** A SELECT of ids of runs of the tenant `$1`: only these, or all but these. */
  readonly among?: { readonly select: string; readonly isWanted: boolean } | undefined;
  readonly beforeId?: string | undefined;
}

/** Newest first. */
export function listRuns({ tenant, workspace }: Visibility, filter: RunFilter, limit: number): Statement {
  const params: Param[] = [tenant];
  const where = ['tenant = $1'];
  const add = (condition: (place: string) => string, value: Param | undefined): void => {
    if (value === undefined) return;
    params.push(value);
    where.push(condition(`$${params.length}`));
  };
  add((place) => `workspace = ${place}`, workspace);
  add((place) => `status = ${place}`, filter.status);
  add((place) => `workflow_id = ${place}`, filter.workflowId);
  if (filter.workflowId === undefined) where.push(`workflow_id NOT IN ${MANAGEMENT_IDS}`);
  add((place) => `run_id >= ${place}`, filter.fromId);
  add((place) => `run_id < ${place}`, filter.beforeId);
  const tag = filter.tag === undefined ? undefined : JSON.stringify(filter.tag);
  add((place) => `run_id IN (SELECT run_id FROM run_tags WHERE tenant = $1 AND tag = ${place})`, tag);
  if (filter.among) where.push(`run_id ${filter.among.isWanted ? 'IN' : 'NOT IN'} (${filter.among.select})`);
  params.push(limit);
  return {
    sql: `SELECT * FROM runs WHERE ${where.join(' AND ')} ORDER BY run_id DESC LIMIT $${params.length}`,
    params,
  };
}
