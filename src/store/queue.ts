import type { Visibility } from './log.ts';
import { insertNew, type NewRows, type Param, placeholders, type Statement, sql, type Write } from './sql.ts';

/**
 * A claimed work item: executing a run, a retry, a timeout, a delivery. Future work is always a row, never just a
 * timer, so it survives a crash.
 */
export interface WorkItem {
  readonly work_id: string;
  readonly kind: string;
  readonly tenant: string;
  readonly payload: string;
  /** The fencing token of the claim. */
  readonly epoch: number;
  /** Number of wake-ups when the item was claimed; see `wake`. */
  readonly wakes: number;
  /** Consecutive attempts that ended because the host died or the handler failed. */
  readonly crashes: number;
  /** Host deaths and stalls that the item is suspected of. */
  readonly strikes: number;
}

/**
 * The right to work on an item. Writes that carry it fail once another host has claimed the item, because each claim
 * increments the epoch.
 */
export interface Lease {
  readonly workId: string;
  readonly owner: string;
  readonly epoch: number;
}

/** A work item to add to the queue. */
export interface NewWork {
  readonly workId: string;
  readonly kind: string;
  readonly tenant: string;
  readonly payload?: string;
  /** Epoch milliseconds, or null for an item that waits until it is woken. */
  readonly dueAt: number | null;
  /** The host that holds the item from the start, so that it need not be claimed. */
  readonly owner?: string | undefined;
}

/** The epoch of a new item; a lease on an item that was added with an owner carries it. */
export const FIRST_EPOCH = 1;

/** Adds a work item; a second item with the same id fails the unit. */
export function addWork(work: NewWork): Write {
  return { sql: `${INTO_WORK.insert} VALUES ${placeholders(1, INTO_WORK.columns)}`, params: workRow(work) };
}

const INTO_WORK: NewRows = {
  insert: 'INSERT INTO work (work_id, kind, tenant, payload, due_at, owner, epoch, wakes, crashes)',
  columns: 9,
};

function workRow({ workId, kind, tenant, payload = '', dueAt, owner }: NewWork): Param[] {
  return [workId, kind, tenant, payload, dueAt, owner ?? null, FIRST_EPOCH, 0, 0];
}

/** Adds the work item of something that the unit creates, so that nothing else refers to its id. */
export function addNewWork(work: NewWork): Write {
  return insertNew(INTO_WORK, workRow(work));
}

/**
 * Adds a work item unless one with this id exists; for items of which there must be one, such as the retention sweep.
 */
export function ensureWork(work: NewWork): Write {
  const write = addWork(work);
  return { ...write, sql: `${write.sql} ON CONFLICT (work_id) DO NOTHING` };
}

/** Adds a work item, due now unless `dueAt` says otherwise; an item with this id is made due and woken instead. */
export function addOrWake({
  workId,
  kind,
  tenant,
  dueAt,
}: Omit<NewWork, 'payload' | 'owner' | 'dueAt'> & DueTime): Write {
  return addOrWakeEach({ workId: '$1', params: [workId] }, { kind, tenant, dueAt });
}

interface DueTime {
  readonly dueAt?: number | undefined;
}

/** Rows of a capability's own tables that each name a work item. The SQL texts use `params` as `$1`, `$2` and so on. */
interface WorkSource {
  /** Common table expressions that `from` uses. */
  readonly with?: string;
  /** The expression for the id of the work item. */
  readonly workId: string;
  /** The tables and conditions; without them there is one row. */
  readonly from?: string;
  readonly params: readonly Param[];
}

/** The work items that `addOrWakeEach` adds. */
interface WorkForEach extends DueTime {
  readonly kind: string;
  readonly tenant: string;
  readonly payload?: string;
  /** Keep the due time of an item that exists, such as that of a retry: then it is woken for its holder only. */
  readonly keepsDueTime?: boolean;
}

/** Adds a work item for each row, due now unless `dueAt` says otherwise; items that exist are woken instead. */
export function addOrWakeEach({ with: tables = '', workId, from, params }: WorkSource, work: WorkForEach): Write {
  const { kind, tenant, payload = '', dueAt, keepsDueTime = false } = work;
  const all: Param[] = [...params];
  const text = (value: string): string => `CAST($${all.push(value)} AS TEXT)`;
  const due = dueAt === undefined ? '$now' : `CAST($${all.push(dueAt)} AS BIGINT)`;
  return {
    // SQLite takes ON CONFLICT after a SELECT only if that has a WHERE.
    sql: `${tables} INSERT INTO work (work_id, kind, tenant, payload, due_at, owner, epoch, wakes, crashes)
          SELECT ${workId}, ${text(kind)}, ${text(tenant)}, ${text(payload)}, ${due}, NULL, ${FIRST_EPOCH}, 0, 0
          ${from ? `FROM ${from}` : 'WHERE 1 = 1'}
          ON CONFLICT (work_id) DO UPDATE SET ${keepsDueTime ? '' : 'due_at = excluded.due_at, '}wakes = work.wakes + 1`,
    params: all,
  };
}

/** Which items to claim. */
interface ClaimOptions {
  /** Kinds of which the host is already running its maximum. */
  readonly except?: readonly string[];
  /** Claim only items of this tenant. */
  readonly tenant?: string;
  /** Claim an item that is suspected of having taken its host down, instead of one that is not. */
  readonly isSuspect?: boolean;
  /** Strikes from which on an item counts as a suspect. */
  readonly suspectFrom?: number;
}

const COLUMNS = 'work_id, kind, tenant, payload, epoch, wakes, crashes, strikes';
const FREE = 'owner IS NULL AND quarantined_at IS NULL';
/**
 * The time, asked for once in a statement. PostgreSQL takes its clock for something else at each row, so without this it
 * would look at every item that waits, and not only at those that an index says are due.
 */
const NOW = '(SELECT $now)';

/** Claims free items that are due, oldest first; of suspects the one first that is suspected of the fewest deaths. */
export function claimDue(owner: string, limit: number, options: ClaimOptions = {}): Write {
  const { except = [], tenant, isSuspect = false, suspectFrom = 1 } = options;
  const ofTenant = tenant === undefined ? '' : `AND tenant = $${except.length + 3}`;
  return {
    sql: `WITH due AS MATERIALIZED (
            SELECT work_id FROM work WHERE ${FREE} AND due_at <= ${NOW} AND strikes ${isSuspect ? '>=' : '<'} ${suspectFrom}
            ${notOf(except, 3)} ${ofTenant} ORDER BY ${isSuspect ? 'strikes, due_at' : 'due_at'} LIMIT $2 $skipLocked
          )
          UPDATE work SET owner = $1, epoch = epoch + 1, due_at = NULL
          WHERE work_id IN (SELECT work_id FROM due) AND owner IS NULL RETURNING ${COLUMNS}`,
    params: [owner, limit, ...except, ...(tenant === undefined ? [] : [tenant])],
    returns: true,
  };
}

/** A tenant with free items that have a due time, and whether one of them can be claimed now. */
export interface DueTenant {
  readonly tenant: string;
  readonly due_at: number | null;
  readonly is_due: number;
}

/**
 * The next `limit` tenants, by name after `after`, that have free items with a due time. It looks at one row for each
 * tenant: how much one of them has in the queue makes no difference.
 */
export function dueTenants(after: string, limit: number, except: readonly string[], suspectFrom = 1): Statement {
  const waiting = 'owner IS NULL AND due_at IS NOT NULL';
  const claimable = `${waiting} AND quarantined_at IS NULL AND strikes < ${suspectFrom} ${notOf(except, 3)}`;
  return sql(
    `WITH RECURSIVE found(tenant, place) AS (
       SELECT (SELECT MIN(tenant) FROM work WHERE ${waiting} AND tenant > CAST($1 AS TEXT)), 1
       UNION ALL
       SELECT (SELECT MIN(work.tenant) FROM work WHERE ${waiting} AND work.tenant > found.tenant), place + 1
       FROM found WHERE found.tenant IS NOT NULL AND place < CAST($2 AS BIGINT)
     ), first AS (
       SELECT tenant, (SELECT MIN(due_at) FROM work WHERE work.tenant = found.tenant AND ${claimable}) AS due_at
       FROM found WHERE tenant IS NOT NULL
     )
     SELECT tenant, due_at, CASE WHEN due_at <= $now THEN 1 ELSE 0 END AS is_due FROM first ORDER BY tenant`,
    after,
    limit,
    ...except,
  );
}

function notOf(kinds: readonly string[], firstPlace: number): string {
  return kinds.length === 0 ? '' : `AND kind NOT IN (${kinds.map((_, index) => `$${firstPlace + index}`).join(', ')})`;
}

/** An item with more strikes than this is quarantined, unless the operator says otherwise. */
export const STRIKES_MAX = 2;

/** Which items get a strike when their host dies, and with more than how many they are quarantined. */
interface StrikeOptions {
  readonly kind: string;
  readonly strikesMax: number;
}

/**
 * Frees items whose owner has no valid heartbeat, and counts a crash for each. Those that get their last strike are
 * quarantined in the same statement, so that no host claims them again. While others are suspected too, a host's death
 * with one of them may have been chance: that one is tried once more, after the others.
 */
export function freeOrphans(limit: number, { kind, strikesMax }: StrikeOptions): Write {
  return {
    sql: `WITH orphans AS MATERIALIZED (
            SELECT work_id FROM work WHERE owner IS NOT NULL
              AND NOT EXISTS (SELECT 1 FROM hosts WHERE host_id = work.owner AND alive_until >= ${NOW})
            LIMIT $1 $skipLocked
          )
          UPDATE work SET owner = NULL, due_at = $now, crashes = crashes + 1,
            strikes = CASE WHEN kind = $2 THEN strikes + 1 ELSE strikes END,
            quarantined_at = CASE WHEN kind = $2 AND (strikes > $3 OR strikes = $3 AND NOT EXISTS (
              SELECT 1 FROM work other WHERE other.strikes >= $3 AND other.work_id <> work.work_id
            )) THEN $now ELSE quarantined_at END
          WHERE work_id IN (SELECT work_id FROM orphans) RETURNING work_id, tenant, strikes, quarantined_at`,
    params: [limit, kind, strikesMax],
    returns: true,
  };
}

/** Quarantines an item that the caller holds and is sure about: no host claims it until the quarantine ends. */
export function quarantine({ workId, owner, epoch }: Lease): Write {
  return {
    sql: `UPDATE work SET owner = NULL, due_at = NULL, epoch = epoch + 1, strikes = strikes + 2, quarantined_at = $now
          WHERE work_id = $1 AND owner = $2 AND epoch = $3`,
    params: [workId, owner, epoch],
  };
}

/** Ends the quarantine of an item; it is due at once, and tried alone once more: its strikes stay. */
export function endQuarantine(workId: string): Write {
  return {
    sql: `UPDATE work SET due_at = $now, quarantined_at = NULL
          WHERE work_id = $1 AND quarantined_at IS NOT NULL`,
    params: [workId],
  };
}

/** Resets the strikes of an item. Its crashes stay: if it does not move, its next trial is longer. */
export function acquit({ workId, owner, epoch }: Lease): Write {
  return {
    sql: 'UPDATE work SET strikes = 0 WHERE work_id = $1 AND owner = $2 AND epoch = $3',
    params: [workId, owner, epoch],
  };
}

/** Counts the items that were quarantined, of all tenants. */
export function countQuarantined(): Statement {
  return sql('SELECT COUNT(*) AS count FROM work WHERE quarantined_at IS NOT NULL');
}

/** A run that was quarantined. */
export interface QuarantinedRow {
  readonly work_id: string;
  readonly quarantined_at: number;
  readonly workspace: string | null;
}

/** Lists the runs whose items were quarantined, before a position, newest first. */
export function listQuarantined(
  { tenant, workspace }: Visibility,
  before: { readonly at: number; readonly id: string } | undefined,
  limit: number,
): Statement {
  const params: Param[] = [tenant];
  const where = ['work.tenant = $1', 'quarantined_at IS NOT NULL'];
  if (workspace !== undefined) where.push(`runs.workspace = $${params.push(workspace)}`);
  if (before) where.push(`(quarantined_at, work_id) < ($${params.push(before.at)}, $${params.push(before.id)})`);
  return sql(
    `SELECT work_id, quarantined_at, runs.workspace FROM work
     JOIN runs ON runs.run_id = work.work_id AND runs.tenant = work.tenant
     WHERE ${where.join(' AND ')} ORDER BY quarantined_at DESC, work_id DESC LIMIT $${params.push(limit)}`,
    ...params,
  );
}

/** Finds a run if it was quarantined. */
export function findQuarantined({ tenant }: Visibility, runId: string): Statement {
  return sql(
    'SELECT work_id FROM work WHERE work_id = $1 AND tenant = $2 AND quarantined_at IS NOT NULL',
    runId,
    tenant,
  );
}

/**
 * Fails the expectation `lease` unless the caller still holds the item; part of every unit written under a lease.
 * `progressed` resets the crash count and the strikes.
 */
export function guardLease({ workId, owner, epoch }: Lease, progressed: boolean): Write {
  const moved = progressed ? 'crashes = 0, strikes = 0' : 'crashes = crashes';
  return {
    sql: `UPDATE work SET ${moved} WHERE work_id = $1 AND owner = $2 AND epoch = $3`,
    params: [workId, owner, epoch],
    expect: 1,
    expectation: 'lease',
  };
}

/**
 * Returns the item to the queue until `dueAt` or the next wake-up. Fails the expectation `lease` if the item was woken
 * since `wakes` was read, because the holder may not have seen the reason.
 */
export function releaseLease({ workId, owner, epoch }: Lease, dueAt: number | null, wakes: number): Write {
  return {
    sql: `UPDATE work SET owner = NULL, due_at = $1, crashes = 0, strikes = 0
          WHERE work_id = $2 AND owner = $3 AND epoch = $4 AND wakes = $5`,
    params: [dueAt, workId, owner, epoch, wakes],
    expect: 1,
    expectation: 'lease',
  };
}

/** Returns the item to the queue after a failure, for a retry at `dueAt`, and counts a crash. */
export function retryWork({ workId, owner, epoch }: Lease, dueAt: number): Write {
  return {
    sql: `UPDATE work SET owner = NULL, due_at = $1, crashes = crashes + 1
          WHERE work_id = $2 AND owner = $3 AND epoch = $4`,
    params: [dueAt, workId, owner, epoch],
  };
}

/** Returns an item that was claimed and not begun: it is due at once, and nothing is counted. */
export function unclaim({ workId, owner, epoch }: Lease): Write {
  return {
    sql: 'UPDATE work SET owner = NULL, due_at = $now WHERE work_id = $1 AND owner = $2 AND epoch = $3',
    params: [workId, owner, epoch],
  };
}

/** Deletes a completed item, if the caller still holds it. */
export function finishWork({ workId, owner, epoch }: Lease): Write {
  return {
    sql: 'DELETE FROM work WHERE work_id = $1 AND owner = $2 AND epoch = $3',
    params: [workId, owner, epoch],
    expect: 1,
    expectation: 'lease',
  };
}

/** Deletes a completed item, unless it was woken since `wakes` was read; then the holder must look again. */
export function finishUnlessWoken({ workId, owner, epoch }: Lease, wakes: number): Write {
  return {
    sql: 'DELETE FROM work WHERE work_id = $1 AND owner = $2 AND epoch = $3 AND wakes = $4',
    params: [workId, owner, epoch, wakes],
    expect: 1,
    expectation: 'lease',
  };
}

/**
 * Saves a checkpoint in the item's payload, from which the next holder resumes after a crash. Fails the expectation
 * `lease` if the item was lost.
 */
export function saveCheckpoint({ workId, owner, epoch }: Lease, payload: string): Write {
  return {
    sql: 'UPDATE work SET payload = $1, crashes = 0 WHERE work_id = $2 AND owner = $3 AND epoch = $4',
    params: [payload, workId, owner, epoch],
    expect: 1,
    expectation: 'lease',
  };
}

/** Deletes an item regardless of who holds it. */
export function dropWork(workId: string): Write {
  return { sql: 'DELETE FROM work WHERE work_id = $1', params: [workId] };
}

/**
 * Makes an item due now and increments its `wakes`, so that a host that holds it cannot release it without noticing.
 */
export function wake(workId: string): Write {
  return { sql: 'UPDATE work SET due_at = $now, wakes = wakes + 1 WHERE work_id = $1', params: [workId] };
}

/** Wakes the items that rows of a capability's own tables name. */
export function wakeEach({ workId, from, params }: Required<Pick<WorkSource, 'workId' | 'from' | 'params'>>): Write {
  return {
    sql: `UPDATE work SET due_at = $now, wakes = wakes + 1 WHERE work_id IN (SELECT ${workId} FROM ${from})`,
    params,
  };
}

/** Makes an item due now unless a host holds it; returns a row if it did. */
export function makeDueNow(workId: string): Write {
  return {
    sql: 'UPDATE work SET due_at = $now WHERE work_id = $1 AND owner IS NULL RETURNING work_id',
    params: [workId],
    returns: true,
  };
}

/** Lists the items that a host holds; `due_at` is set on those that were woken since they were claimed. */
export function ownedWork(owner: string): Statement {
  return sql(`SELECT ${COLUMNS}, due_at FROM work WHERE owner = $1`, owner);
}

/** Reads the lease, the number of wake-ups and the checkpoint of an item. */
export function readWorkItem(workId: string): Statement {
  return sql('SELECT wakes, owner, epoch, payload FROM work WHERE work_id = $1', workId);
}

/** The items of one kind that are due and free. */
export interface DueKind {
  readonly kind: string;
  readonly count: number;
  /** For how many milliseconds the oldest of them has been due; null if their times do not tell. */
  readonly lag: number | null;
}

/** Counts the items that are due and free by kind, the oldest `limit` of them, so that a long queue costs no more. */
export function countDue(limit: number): Statement {
  return sql(
    `SELECT kind, COUNT(*) AS count, MAX($now - NULLIF(due_at, 0)) AS lag FROM (
       SELECT kind, due_at FROM work WHERE ${FREE} AND due_at <= ${NOW} ORDER BY due_at LIMIT $1
     ) due GROUP BY kind`,
    limit,
  );
}

/** When the next free item is due, and when the next one that is suspected of a host's death is. */
export interface NextDue {
  readonly due_at: number | null;
  readonly suspect_at: number | null;
}

/** Finds when the next free items are due, so that the host can sleep until then; `except` lists kinds to ignore. */
export function nextDue(except: readonly string[], suspectFrom = 1): Statement {
  const waiting = `FROM work WHERE ${FREE} AND due_at IS NOT NULL`;
  return sql(
    `SELECT (SELECT MIN(due_at) ${waiting} AND strikes < ${suspectFrom} ${notOf(except, 1)}) AS due_at,
       (SELECT MIN(due_at) ${waiting} AND strikes > 0 AND strikes >= ${suspectFrom}) AS suspect_at`,
    ...except,
  );
}
