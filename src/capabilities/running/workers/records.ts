import { type Param, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

/** The tables of node types that workers serve, and of the attempts that they make. */
export const WORKER_TABLES: readonly Migration[] = [
  {
    id: 'workers/0001',
    statements: [
      `CREATE TABLE worker_types (
        tenant TEXT NOT NULL,
        type_id TEXT NOT NULL,
        pool TEXT NOT NULL,
        body TEXT NOT NULL,
        updated_at BIGINT NOT NULL,
        seen_at BIGINT,
        PRIMARY KEY (tenant, type_id)
      ) $clustered`,
      // `body` has config and inputs until the attempt is over, and `outcome` what it resulted in.
      `CREATE TABLE worker_tasks (
        task_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        workspace TEXT,
        run_id TEXT NOT NULL,
        node_id TEXT NOT NULL,
        attempt BIGINT NOT NULL,
        visit BIGINT NOT NULL,
        type_id TEXT NOT NULL,
        pool TEXT NOT NULL,
        body TEXT NOT NULL,
        deadline BIGINT,
        state TEXT NOT NULL,
        epoch BIGINT NOT NULL,
        worker TEXT,
        lease_ms BIGINT,
        lease_until BIGINT,
        progress TEXT,
        is_told BIGINT NOT NULL,
        outcome TEXT,
        created_at BIGINT NOT NULL
      ) $clustered`,
      `CREATE INDEX worker_tasks_open ON worker_tasks (tenant, type_id, created_at)
        WHERE state IN ('queued', 'leased')`,
      'CREATE INDEX worker_tasks_by_run ON worker_tasks (run_id)',
    ],
  },
];

/** A declared node type. */
export interface WorkerTypeRow {
  readonly tenant: string;
  readonly type_id: string;
  readonly pool: string;
  /** The declaration, as JSON. */
  readonly body: string;
  readonly updated_at: number;
  /** When a worker last asked for its attempts. */
  readonly seen_at: number | null;
}

/** Whose tasks and types somebody sees: those of a tenant and, where they are bound to one, of a workspace and a pool. */
export interface WorkerReach {
  readonly tenant: string;
  readonly workspace?: string | undefined;
  readonly pool?: string | undefined;
}

/** An attempt that is to be made by a worker. */
export interface WorkerTaskRow {
  readonly task_id: string;
  readonly tenant: string;
  readonly workspace: string | null;
  readonly run_id: string;
  readonly node_id: string;
  readonly attempt: number;
  readonly visit: number;
  readonly type_id: string;
  readonly pool: string;
  readonly body: string;
  readonly deadline: number | null;
  readonly state: 'queued' | 'leased' | 'suspended' | 'done' | 'failed' | 'cancelled';
  /** The fencing token: each claim increments it. */
  readonly epoch: number;
  readonly worker: string | null;
  readonly lease_ms: number | null;
  readonly lease_until: number | null;
  readonly progress: string | null;
  readonly outcome: string | null;
  readonly created_at: number;
}

/** A task with the store's time, and whether its run has ended. */
export type TimedTaskRow = WorkerTaskRow & {
  readonly now: number;
  readonly run_ended_at: number | null;
  /** Whether the log of the run has the warning that no worker serves the type. */
  readonly is_warned: number;
};

/** A task without what it was called with and what it resulted in, which may be megabytes. */
export type TaskStatusRow = Omit<TimedTaskRow, 'body' | 'outcome'>;

/** Declares a type, or replaces its declaration. The expectation `pool` fails if the type belongs to another pool. */
export function putWorkerType(row: WorkerTypeRow, boundTo: string | undefined): Write {
  const params: Param[] = [row.tenant, row.type_id, row.pool, row.body];
  const bound = boundTo === undefined ? '' : `WHERE worker_types.pool = $${params.push(boundTo)}`;
  return {
    sql: `INSERT INTO worker_types (tenant, type_id, pool, body, updated_at) VALUES ($1, $2, $3, $4, $now)
          ON CONFLICT (tenant, type_id) DO UPDATE
            SET pool = excluded.pool, body = excluded.body, updated_at = excluded.updated_at ${bound}`,
    params,
    expect: 1,
    expectation: 'pool',
  };
}

/** Removes a declaration. The expectation `type` fails if there is none. */
export function deleteWorkerType({ tenant, pool }: WorkerReach, typeId: string): Write {
  const params: Param[] = [tenant, typeId];
  const bound = pool === undefined ? '' : ` AND pool = $${params.push(pool)}`;
  return {
    sql: `DELETE FROM worker_types WHERE tenant = $1 AND type_id = $2${bound}`,
    params,
    expect: 1,
    expectation: 'type',
  };
}

/** The declarations of some types; of all without a list. */
export function findWorkerTypes(tenant: string, typeIds?: readonly string[]): Statement {
  const named = typeIds ? `AND type_id IN (${typeIds.map((_, index) => `$${index + 2}`).join(', ')})` : '';
  return sql(`SELECT * FROM worker_types WHERE tenant = $1 ${named} ORDER BY type_id`, tenant, ...(typeIds ?? []));
}

/** Notes that a worker asks for attempts of types. */
export function seeWorkerTypes(tenant: string, typeIds: readonly string[]): Write {
  return {
    sql: `UPDATE worker_types SET seen_at = $now
          WHERE tenant = $1 AND type_id IN (${typeIds.map((_, index) => `$${index + 2}`).join(', ')})`,
    params: [tenant, ...typeIds],
  };
}

/** What a new task consists of. */
type NewTask = Pick<
  WorkerTaskRow,
  | 'task_id'
  | 'tenant'
  | 'workspace'
  | 'run_id'
  | 'node_id'
  | 'attempt'
  | 'visit'
  | 'type_id'
  | 'pool'
  | 'body'
  | 'deadline'
>;

/** Puts an attempt into the queue, unless it is there already. */
export function insertTask(task: NewTask): Write {
  return {
    sql: `INSERT INTO worker_tasks (task_id, tenant, workspace, run_id, node_id, attempt, visit, type_id, pool, body,
            deadline, state, epoch, is_told, created_at)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'queued', 0, 0, $now)
          ON CONFLICT (task_id) DO NOTHING`,
    params: [
      task.task_id,
      task.tenant,
      task.workspace,
      task.run_id,
      task.node_id,
      task.attempt,
      task.visit,
      task.type_id,
      task.pool,
      task.body,
      task.deadline,
    ],
  };
}

const STATUS_COLUMNS = [
  ...['task_id', 'tenant', 'workspace', 'run_id', 'node_id', 'attempt', 'visit', 'type_id', 'pool', 'deadline'],
  ...['state', 'epoch', 'worker', 'lease_ms', 'lease_until', 'progress', 'is_told AS is_warned', 'created_at'],
]
  .map((name) => `worker_tasks.${name}`)
  .join(', ');

/** A task of a tenant, as a TimedTaskRow. */
export function findTask(reach: WorkerReach, taskId: string): Statement {
  return selectTask(`${STATUS_COLUMNS}, worker_tasks.body, worker_tasks.outcome`, reach, taskId);
}

/** A task of a tenant, as a TaskStatusRow. */
export function findTaskStatus(reach: WorkerReach, taskId: string): Statement {
  return selectTask(STATUS_COLUMNS, reach, taskId);
}

function selectTask(columns: string, reach: WorkerReach, taskId: string): Statement {
  const params: Param[] = [taskId];
  return {
    sql: `SELECT ${columns}, $now AS now, runs.ended_at AS run_ended_at FROM worker_tasks
          LEFT JOIN runs ON runs.run_id = worker_tasks.run_id AND runs.tenant = worker_tasks.tenant
          WHERE task_id = $1 AND ${within(reach, params)}`,
    params,
  };
}

/** Attempts that are not over, oldest first, as TaskStatusRows. */
export function findOpenTasks(reach: WorkerReach, limit: number): Statement {
  const params: Param[] = [];
  return {
    sql: `SELECT ${STATUS_COLUMNS}, $now AS now, runs.ended_at AS run_ended_at FROM worker_tasks
          JOIN runs ON runs.run_id = worker_tasks.run_id AND runs.tenant = worker_tasks.tenant AND runs.ended_at IS NULL
          WHERE ${within(reach, params)} AND ${IS_OPEN}
          ORDER BY worker_tasks.created_at LIMIT $${params.push(limit)}`,
    params,
  };
}

/** How many attempts of a type are open. */
export interface OpenCount {
  readonly type_id: string;
  readonly waiting: number;
  readonly leased: number;
}

/** Counts the open attempts by type; one whose lease has run out waits again. */
export function countOpenTasks(reach: WorkerReach): Statement {
  const params: Param[] = [];
  return {
    sql: `SELECT type_id, SUM(CASE WHEN ${IS_FREE} THEN 1 ELSE 0 END) AS waiting,
            SUM(CASE WHEN ${IS_FREE} THEN 0 ELSE 1 END) AS leased
          FROM worker_tasks JOIN runs
            ON runs.run_id = worker_tasks.run_id AND runs.tenant = worker_tasks.tenant AND runs.ended_at IS NULL
          WHERE ${within(reach, params)} AND ${IS_OPEN} GROUP BY type_id`,
    params,
  };
}

/** Whether a claim would find something. */
export function findClaimable(reach: WorkerReach, typeIds: readonly string[]): Statement {
  const params: Param[] = [];
  return { sql: `SELECT task_id ${claimable(reach, typeIds, params)} LIMIT 1`, params };
}

/** The lease that a claim asks for. */
interface TaskLeaseRequest {
  readonly worker: string | null;
  readonly leaseMs: number;
  readonly limit: number;
}

/** Leases tasks, oldest first: new ones, and those whose lease has run out. */
export function claimTasks(reach: WorkerReach, typeIds: readonly string[], request: TaskLeaseRequest): Write {
  const params: Param[] = [request.worker, request.leaseMs];
  const from = claimable(reach, typeIds, params);
  return {
    // Materialized, or PostgreSQL may evaluate the choice once for each row and take more than the limit.
    sql: `WITH chosen AS MATERIALIZED (
            SELECT task_id ${from} ORDER BY created_at LIMIT $${params.push(request.limit)} $skipLocked)
          UPDATE worker_tasks SET state = 'leased', epoch = epoch + 1, worker = $1, lease_ms = $2,
            lease_until = $now + $2, progress = NULL
          WHERE task_id IN (SELECT task_id FROM chosen) AND ${IS_FREE} RETURNING *`,
    params,
    returns: true,
  };
}

const IS_FREE = `(state = 'queued' OR (state = 'leased' AND lease_until <= $now))`;
const IS_OPEN = `state IN ('queued', 'leased')`;

function claimable(reach: WorkerReach, typeIds: readonly string[], params: Param[]): string {
  const types = typeIds.map((typeId) => `$${params.push(typeId)}`).join(', ');
  return `FROM worker_tasks WHERE ${within(reach, params)} AND type_id IN (${types}) AND ${IS_OPEN} AND ${IS_FREE}
    AND EXISTS (SELECT 1 FROM runs WHERE runs.run_id = worker_tasks.run_id AND runs.ended_at IS NULL)`;
}

function within({ tenant, workspace, pool }: WorkerReach, params: Param[]): string {
  const conditions = [`worker_tasks.tenant = $${params.push(tenant)}`];
  if (workspace !== undefined) conditions.push(`worker_tasks.workspace = $${params.push(workspace)}`);
  if (pool !== undefined) conditions.push(`worker_tasks.pool = $${params.push(pool)}`);
  return conditions.join(' AND ');
}

/** The right of a worker to report on a task. */
export interface TaskClaim {
  readonly tenant: string;
  readonly taskId: string;
  readonly epoch: number;
}

const IS_HELD = `task_id = $1 AND tenant = $2 AND epoch = $3 AND state = 'leased' AND lease_until > $now`;
const HELD = { expect: 1, expectation: 'task' } as const;

/** Prolongs a lease. Like every write of a worker, it fails the expectation `task` if the lease is over. */
export function keepTask({ taskId, tenant, epoch }: TaskClaim, progress: string | undefined): Write {
  return {
    sql: `UPDATE worker_tasks SET lease_until = $now + lease_ms, progress = COALESCE($4, progress) WHERE ${IS_HELD}`,
    params: [taskId, tenant, epoch, progress ?? null],
    ...HELD,
  };
}

/** Stores what an attempt resulted in; its inputs are not needed any more. */
export function endTask({ taskId, tenant, epoch }: TaskClaim, state: 'done' | 'failed', outcome: string): Write {
  return {
    sql: `UPDATE worker_tasks SET state = $4, outcome = $5, body = '' WHERE ${IS_HELD}`,
    params: [taskId, tenant, epoch, state, outcome],
    ...HELD,
  };
}

/** Stores what an attempt waits for. Its inputs are kept for the next call. */
export function suspendTask({ taskId, tenant, epoch }: TaskClaim, waitsFor: string): Write {
  return {
    sql: `UPDATE worker_tasks SET state = 'suspended', outcome = $4 WHERE ${IS_HELD}`,
    params: [taskId, tenant, epoch, waitsFor],
    ...HELD,
  };
}

/** Puts an attempt back into the queue, with what it has waited for. The expectation `task` fails if it does not wait. */
export function requeueTask({ tenant, task_id, body, deadline }: Omit<WorkerTaskRow, 'epoch'>): Write {
  return {
    sql: `UPDATE worker_tasks SET state = 'queued', body = $3, deadline = $4, outcome = NULL, is_told = 0,
            created_at = $now
          WHERE task_id = $1 AND tenant = $2 AND state = 'suspended'`,
    params: [task_id, tenant, body, deadline],
    ...HELD,
  };
}

/** Takes an attempt back, whoever works on it. The expectation `task` fails if it is over already. */
export function cancelTask(tenant: string, taskId: string): Write {
  return {
    sql: `UPDATE worker_tasks SET state = 'cancelled', body = ''
          WHERE task_id = $1 AND tenant = $2 AND ${IS_OPEN}`,
    params: [taskId, tenant],
    ...HELD,
  };
}

/** Notes that the log of the run has the warning that no worker serves the type. */
export function markNoWorkerWarned(tenant: string, taskId: string): Write {
  return {
    sql: 'UPDATE worker_tasks SET is_told = 1 WHERE task_id = $1 AND tenant = $2',
    params: [taskId, tenant],
  };
}

/** Deletes the tasks of a run. */
export function deleteTasks({ tenant, runId }: { readonly tenant: string; readonly runId: string }): Write {
  return { sql: 'DELETE FROM worker_tasks WHERE run_id = $1 AND tenant = $2', params: [runId, tenant] };
}
