import type { EventType } from '../protocol/running/events.ts';
import { insertNew, lookup, type NewRows, type Param, placeholders, type Statement, sql, type Write } from './sql.ts';

/**
 * The part of the data a caller may see: a tenant, or one workspace of it. `tenant` is the storage key derived from the
 * credential, never a value from a request body.
 */
export interface Visibility {
  readonly tenant: string;
  readonly workspace?: string | undefined;
}

/**
 * A row of `runs`. Columns from `status` on are a projection of the event log, updated in the unit that appends events.
 */
export interface RunRow {
  readonly run_id: string;
  readonly tenant: string;
  readonly workspace: string | null;
  readonly principal: string;
  readonly issuer: string;
  /** The kind of principal that created the run: a user, an API key or the host itself. */
  readonly lane: string;
  readonly workflow_owner: string;
  readonly workflow_id: string;
  readonly workflow_version: number;
  readonly parent_run_id: string | null;
  readonly parent_node_id: string | null;
  /** JSON of the immutable facts that the fold starts from, such as the inputs. */
  readonly facts: string;
  readonly engine_version: number;
  readonly event_log_schema_version: number;
  readonly created_at: number;
  readonly status: string;
  /** The sequence of the last event. */
  readonly sequence: number;
  readonly updated_at: number;
  readonly ended_at: number | null;
  readonly error_code: string | null;
  /** The digest of the log, with the sequence that it covers it up to; null for runs that are older than digests. */
  readonly log_seal: string | null;
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
  'log_seal',
] as const satisfies readonly (keyof RunRow)[];

/** A run in a list: without its facts, which may be large. */
export type ListedRun = Omit<RunRow, 'facts' | 'log_seal'>;

/** The columns of a listed run. */
export const LISTED_COLUMNS = RUN_COLUMNS.filter((column) => column !== 'facts' && column !== 'log_seal').join(', ');

const INTO_RUNS: NewRows = { insert: `INSERT INTO runs (${RUN_COLUMNS.join(', ')})`, columns: RUN_COLUMNS.length };

/** Inserts the row of a new run. */
export function insertRun(row: RunRow): Write {
  // In the order of RUN_COLUMNS, but named: V8 takes six times as long to look them up by a list.
  return insertNew(INTO_RUNS, [
    row.run_id,
    row.tenant,
    row.workspace,
    row.principal,
    row.issuer,
    row.lane,
    row.workflow_owner,
    row.workflow_id,
    row.workflow_version,
    row.parent_run_id,
    row.parent_node_id,
    row.facts,
    row.engine_version,
    row.event_log_schema_version,
    row.created_at,
    row.status,
    row.sequence,
    row.updated_at,
    row.ended_at,
    row.error_code,
    row.log_seal,
  ]);
}

/** The changes to a run's row that follow from appending the events with sequences `from + 1` to `to`. */
export interface RunAdvance {
  readonly runId: string;
  readonly from: number;
  readonly to: number;
  readonly status: string;
  readonly updatedAt: number;
  readonly endedAt: number | null;
  readonly errorCode: string | null;
  readonly logSeal: string | null;
}

/**
 * Updates a run's row by compare-and-swap on its sequence. Fails the expectation `sequence` if another writer appended
 * first, so sequences have no gaps or duplicates.
 */
export function advanceRun(move: RunAdvance): Write {
  return {
    sql: `UPDATE runs SET sequence = $1, status = $2, updated_at = $3, ended_at = $4, error_code = $5, log_seal = $6
          WHERE run_id = $7 AND sequence = $8`,
    params: [move.to, move.status, move.updatedAt, move.endedAt, move.errorCode, move.logSeal, move.runId, move.from],
    expect: 1,
    expectation: 'sequence',
  };
}

/**
 * An event as stored: `body` is the exact text that every reader gets, `hidden` the unmasked values that only the fold
 * sees.
 */
export interface StoredEvent {
  readonly sequence: number;
  readonly type: string;
  readonly body: string;
  readonly hidden: string | null;
}

const INTO_EVENTS: NewRows = { insert: 'INSERT INTO events (run_id, sequence, type, body, hidden)', columns: 5 };
/** Rows per INSERT; the last statement of a long append has fewer. */
const EVENTS_PER_INSERT = 16;

/** Appends events. Callers put these writes in one unit with the run's row, which guards the sequence. */
export function insertEvents(runId: string, events: readonly StoredEvent[]): Write[] {
  const writes: Write[] = [];
  for (let start = 0; start < events.length; start += EVENTS_PER_INSERT) {
    const params: Param[] = [];
    for (const { sequence, type, body, hidden } of events.slice(start, start + EVENTS_PER_INSERT)) {
      params.push(runId, sequence, type, body, hidden);
    }
    writes.push(insertNew(INTO_EVENTS, params));
  }
  return writes;
}

/** Finds a run by id, if it is visible to the caller. */
export function findRun({ tenant, workspace }: Visibility, runId: string): Statement {
  if (workspace === undefined) return lookup('SELECT * FROM runs WHERE run_id = $1 AND tenant = $2', runId, tenant);
  return lookup('SELECT * FROM runs WHERE run_id = $1 AND tenant = $2 AND workspace = $3', runId, tenant, workspace);
}

/** Filters a list of run ids down to those that the caller may see. */
export function visibleRuns({ tenant, workspace }: Visibility, runIds: readonly string[]): Statement {
  const among = `SELECT run_id FROM runs WHERE tenant = $1 AND run_id IN ${placeholders(1, runIds.length, 3)}`;
  return sql(`${among} AND ($2 = '' OR workspace = $2)`, tenant, workspace ?? '', ...runIds);
}

/** A run id with the tenant that owns it; statements that take one never cross tenants. */
export interface RunRef {
  readonly tenant: string;
  readonly runId: string;
}

/** Events of a page that is read like single rows: a long page would keep the lookups of others waiting. */
const LOOKED_UP_MAX = 16;
const pageOf = (limit: number): typeof sql => (limit <= LOOKED_UP_MAX ? lookup : sql);

/** Reads a page of a run's log, in order, starting after the sequence `after`. */
export function readEvents({ tenant, runId }: RunRef, after: number, limit: number): Statement {
  return pageOf(limit)(
    // Not EXISTS: SQLite would then sort what it has already read in order.
    `SELECT sequence, type, body, hidden FROM events
     WHERE run_id = (SELECT run_id FROM runs WHERE run_id = $1 AND tenant = $3) AND sequence > $2
     ORDER BY sequence LIMIT $4`,
    runId,
    after,
    tenant,
    limit,
  );
}

/** One row of `readRunWithEvents`: the run as it is, and an event of its log, if there is one. */
export type RunWithEventRow = Pick<RunRow, 'status'> & { readonly last: number } & (
    | StoredEvent
    | Record<keyof StoredEvent, null>
  );

const runWithEvents = (condition: string): string =>
  `SELECT runs.status, runs.sequence AS last, events.sequence, events.type, events.body, events.hidden
   FROM runs LEFT JOIN events ON events.run_id = runs.run_id AND events.sequence > $3
   WHERE runs.run_id = $1 AND runs.tenant = $2 ${condition} ORDER BY events.sequence LIMIT $4`;
const RUN_WITH_EVENTS = runWithEvents('');
const RUN_WITH_EVENTS_IN_WORKSPACE = runWithEvents('AND runs.workspace = $5');

/** Reads a run's state with the page of its log after the sequence `after`; at least one row, if the run is visible. */
export function readRunWithEvents(
  { tenant, workspace }: Visibility,
  runId: string,
  after: number,
  limit: number,
): Statement {
  const page = pageOf(limit);
  if (workspace === undefined) return page(RUN_WITH_EVENTS, runId, tenant, after, limit);
  return page(RUN_WITH_EVENTS_IN_WORKSPACE, runId, tenant, after, limit, workspace);
}

/** A stored event with its run. */
export interface LoggedRow extends StoredEvent {
  readonly run_id: string;
}

/** The last event of each of these runs, as readers get it, unless it is longer than that many characters. */
export function lastEvents(runIds: readonly string[], charsMax: number): Statement {
  return sql(
    `SELECT events.run_id, events.body FROM runs
     JOIN events ON events.run_id = runs.run_id AND events.sequence = runs.sequence
     WHERE runs.run_id IN ${placeholders(1, runIds.length)} AND length(events.body) <= $${runIds.length + 1}`,
    ...runIds,
    charsMax,
  );
}

/** Events of some types of some runs of a tenant, run by run. */
export function findEvents(runIds: readonly string[], types: readonly EventType[], limit: number): Statement {
  const among = placeholders(1, runIds.length);
  const wanted = placeholders(1, types.length, runIds.length + 1);
  return sql(
    `SELECT run_id, sequence, type, body, hidden FROM events WHERE run_id IN ${among} AND type IN ${wanted}
     ORDER BY run_id, sequence LIMIT $${runIds.length + types.length + 1}`,
    ...runIds,
    ...types,
    limit,
  );
}

/** The ids of runs that have one of the host's own tags, as a subquery; its statement passes the tenant as `$1`. */
export function taggedRuns(...tags: readonly string[]): string {
  const wanted = tags.map((tag) => `'${JSON.stringify(tag)}'`).join(', ');
  return `SELECT run_id FROM run_tags WHERE tenant = $1 AND tag IN (${wanted})`;
}

/** Finds runs of a tenant by their ids. */
export function findRuns(tenant: string, runIds: readonly string[]): Statement {
  return sql(
    `SELECT ${LISTED_COLUMNS} FROM runs WHERE tenant = $1 AND run_id IN ${placeholders(1, runIds.length, 2)}`,
    tenant,
    ...runIds,
  );
}

/** Lists all direct child runs of a run. */
export function childRuns({ tenant, runId }: RunRef): Statement {
  const children = `SELECT ${LISTED_COLUMNS} FROM runs WHERE parent_run_id = $1 AND tenant = $2 ORDER BY run_id`;
  return sql(children, runId, tenant);
}

/** Lists those direct children of a run that are in `childRunIds`. */
export function childRunsAmong({ tenant, runId }: RunRef, childRunIds: readonly string[]): Statement {
  return sql(
    `SELECT * FROM runs WHERE parent_run_id = $1 AND tenant = $2 AND run_id IN ${placeholders(1, childRunIds.length, 3)}
     ORDER BY run_id`,
    runId,
    tenant,
    ...childRunIds,
  );
}

/** What lists say about a fork. */
export interface ForkRow {
  readonly run_id: string;
  readonly source_run_id: string;
  readonly mode: string;
  readonly is_preview: number;
}

/** Notes that a new run is a fork of another. */
export function insertFork(tenant: string, { run_id, source_run_id, mode, is_preview }: ForkRow): Write {
  return {
    sql: 'INSERT INTO run_forks (run_id, tenant, source_run_id, mode, is_preview) VALUES ($1, $2, $3, $4, $5)',
    params: [run_id, tenant, source_run_id, mode, is_preview],
  };
}

/** Those of some runs that are forks, without the ones that an older version made: their rows lack the mode. */
export function forksAmong(tenant: string, runIds: readonly string[]): Statement {
  return sql(
    `SELECT run_id, source_run_id, mode, is_preview FROM run_forks
     WHERE tenant = $1 AND mode IS NOT NULL AND run_id IN ${placeholders(1, runIds.length, 2)}`,
    tenant,
    ...runIds,
  );
}

/** Lists the forks of a run, newest first. */
export function forkRuns({ tenant, runId }: RunRef, limit: number): Statement {
  return sql(
    `SELECT ${LISTED_COLUMNS} FROM runs WHERE run_id IN (SELECT run_id FROM run_forks WHERE tenant = $1 AND source_run_id = $2
       ORDER BY run_id DESC LIMIT $3) AND tenant = $1 ORDER BY run_id DESC`,
    tenant,
    runId,
    limit,
  );
}

/** Inserts the tags of a new run, each once. */
export function insertTags({ tenant, runId }: RunRef, tags: readonly string[]): Write[] {
  // Stored as JSON text, because a tag may contain characters that a text column cannot store (NUL).
  return [...new Set(tags)].map((tag) => ({
    sql: 'INSERT INTO run_tags (tenant, tag, run_id) VALUES ($1, $2, $3)',
    params: [tenant, JSON.stringify(tag), runId],
  }));
}

/** Reads the number of descendants of a root run (a run without a parent). */
export function readDescendantCount({ tenant, runId }: RunRef): Statement {
  return sql('SELECT below FROM run_trees WHERE run_id = $1 AND tenant = $2', runId, tenant);
}

/** Adds one to the number of descendants of a root run. */
export function incrementDescendants({ tenant, runId }: RunRef): Write {
  return {
    sql: `INSERT INTO run_trees (run_id, tenant, below) VALUES ($1, $2, 1)
          ON CONFLICT (run_id) DO UPDATE SET below = run_trees.below + 1`,
    params: [runId, tenant],
  };
}

/**
 * Registers a run as a holder of a concurrency scope. With `exclusive`, fails the expectation `scope` if a live run
 * holds it.
 */
export function acquireScope(scopeKey: string, runId: string, exclusive: boolean): Write[] {
  return [
    {
      sql: `INSERT INTO scope_holders (scope_key, holders) VALUES ($1, 1)
            ON CONFLICT (scope_key) DO UPDATE SET holders = scope_holders.holders + 1
            ${exclusive ? 'WHERE scope_holders.holders = 0' : ''}`,
      params: [scopeKey],
      expect: 1,
      expectation: 'scope',
    },
    { sql: 'INSERT INTO live_scopes (scope_key, run_id) VALUES ($1, $2)', params: [scopeKey, runId] },
  ];
}

/** Finds one run that holds the scope, to name it in the conflict response. */
export function findScopeHolder(scopeKey: string): Statement {
  return sql('SELECT run_id FROM live_scopes WHERE scope_key = $1 ORDER BY run_id LIMIT 1', scopeKey);
}

/**
 * Releases a run's hold on a concurrency scope. Call it once per `acquireScope`, or the count of holders becomes wrong.
 */
export function releaseScope(scopeKey: string, runId: string): Write[] {
  return [
    { sql: 'UPDATE scope_holders SET holders = holders - 1 WHERE scope_key = $1', params: [scopeKey] },
    { sql: 'DELETE FROM scope_holders WHERE scope_key = $1 AND holders = 0', params: [scopeKey] },
    { sql: 'DELETE FROM live_scopes WHERE scope_key = $1 AND run_id = $2', params: [scopeKey, runId] },
  ];
}
