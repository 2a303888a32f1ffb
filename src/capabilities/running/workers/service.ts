import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import {
  type ClaimTasksRequest,
  DEFAULT_POOL,
  type EffectClaim,
  type EffectResult,
  type EffectState,
  LEASE_S,
  OPEN_TASKS_MAX,
  type OpenTask,
  type TaskCompletion,
  type TaskFailure,
  type TaskHeartbeat,
  type TaskLease,
  type TaskSuspension,
  type WorkerTask,
  type WorkerType,
  type WorkerTypeRequest,
} from '../../../protocol/running/workers.ts';
import { and, type Change, changeOf, perform, unchanged } from '../../../runtime/change.ts';
import { claimOf, type IntendedEffect, logicalInvocationId, namedEffect } from '../../../runtime/effects/ledger.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { type EffectRow, findEffect, settleEffect } from '../../../store/effects.ts';
import { wake } from '../../../store/queue.ts';
import type { Write } from '../../../store/sql.ts';
import { redactValue } from '../../../system/redaction.ts';
import type { Caller } from '../../request.ts';
import { type Audit, entryBy } from '../../trust/audit/door.ts';
import { openTaskDocument, taskDocument, typeDocument } from './document.ts';
import type { Workers } from './door.ts';
import {
  countOpenTasks,
  deleteWorkerType,
  endTask,
  findOpenTasks,
  findTaskStatus,
  findWorkerTypes,
  keepTask,
  type OpenCount,
  putWorkerType,
  suspendTask,
  type TaskClaim,
  type TaskStatusRow,
  type WorkerReach,
  type WorkerTypeRow,
} from './records.ts';
import {
  checkTypeId,
  HOST_TYPE,
  isOpen,
  isToolTask,
  OTHER_POOL,
  TOO_MANY_TYPES,
  TOOL_WAITS,
  TYPES_MAX,
} from './rules.ts';
import { TaskQueue } from './task-queue.ts';

const LEASE_OVER = refuse(
  'conflict',
  'The lease of this task has expired, and another worker may have it. Drop the task and report nothing.',
);

const NOT_CLAIMED = refuse('conflict', 'The effect was never claimed, so it cannot get a result.');

/** Node types that workers serve, and the attempts that they make. */
export class WorkerService implements Workers {
  readonly #runtime: Runtime;
  readonly #audit: Pick<Audit, 'entry'>;
  readonly queue: TaskQueue;

  constructor(runtime: Runtime, audit: Pick<Audit, 'entry'>) {
    this.#runtime = runtime;
    this.#audit = audit;
    this.queue = new TaskQueue(runtime);
  }

  async declare(caller: Caller, typeId: string, request: WorkerTypeRequest): Promise<Change<WorkerType> | Refusal> {
    const { tenant, pool: boundTo } = reachOf(caller);
    const refusal = checkTypeId(typeId) ?? (this.#runtime.catalog.has(typeId) ? HOST_TYPE : undefined);
    if (refusal) return refusal;
    const unusable = await this.#unusableSchema(tenant, request);
    if (unusable) return unusable;
    const known = await this.#runtime.store.read<WorkerTypeRow>(findWorkerTypes(tenant));
    const before = known.find(({ type_id }) => type_id === typeId);
    if (!before && known.length >= TYPES_MAX) return TOO_MANY_TYPES;
    const { pool = boundTo ?? DEFAULT_POOL, ...rest } = request;
    if (boundTo !== undefined && pool !== boundTo) return OTHER_POOL;
    const body = JSON.stringify(rest);
    const row = { tenant, type_id: typeId, pool, body, updated_at: 0, seen_at: before?.seen_at ?? null };
    const refusals = { pool: OTHER_POOL };
    const change = changeOf(typeDocument(row), [putWorkerType(row, boundTo)], { refusals });
    // Every worker declares its types when it starts; what is as it was is nothing to record.
    if (before?.pool === pool && before.body === body) return change;
    return and(change, entryBy(this.#audit, caller.subject, 'worker.declare', typeId, { pool }));
  }

  async #unusableSchema(tenant: string, { config, inputs, outputs }: WorkerTypeRequest): Promise<Refusal | undefined> {
    for (const [field, schema] of Object.entries({ config, inputs, outputs })) {
      const problem = schema && (await this.#runtime.schemas.of(tenant).problemWith(schema));
      if (problem)
        return refuse('validation_error', `${field}: the JSON Schema cannot be used: ${problem}.`, { field });
    }
    return undefined;
  }

  async types(caller: Caller): Promise<readonly WorkerType[]> {
    const reach = reachOf(caller);
    const { tenant, pool } = reach;
    const { store } = this.#runtime;
    const [rows, counts] = await Promise.all([
      store.read<WorkerTypeRow>(findWorkerTypes(tenant)),
      store.read<OpenCount>(countOpenTasks(reach)),
    ]);
    const open = new Map(counts.map((count) => [count.type_id, count]));
    return rows
      .filter((row) => pool === undefined || row.pool === pool)
      .map((row) => {
        const { waiting = 0, leased = 0 } = open.get(row.type_id) ?? {};
        return { ...typeDocument(row), waiting: Number(waiting), leased: Number(leased) };
      });
  }

  async openTasks(caller: Caller): Promise<readonly OpenTask[]> {
    const rows = await this.#runtime.store.read<TaskStatusRow>(findOpenTasks(reachOf(caller), OPEN_TASKS_MAX));
    return rows.map(openTaskDocument);
  }

  async remove(caller: Caller, typeId: string): Promise<Change | Refusal> {
    const refusals = { type: NOT_FOUND };
    const change = changeOf(undefined, [deleteWorkerType(reachOf(caller), typeId)], { refusals });
    return and(change, entryBy(this.#audit, caller.subject, 'worker.remove', typeId));
  }

  async claim(caller: Caller, request: ClaimTasksRequest, signal: AbortSignal): Promise<readonly WorkerTask[]> {
    const { types, worker = null, max = 1, waitSeconds = 0, leaseSeconds = LEASE_S } = request;
    const wanted = { types, worker, max, waitMs: waitSeconds * 1_000, leaseMs: leaseSeconds * 1_000 };
    return (await this.queue.claim(reachOf(caller), wanted, signal)).map(taskDocument);
  }

  async heartbeat(
    caller: Caller,
    taskId: string,
    { epoch, progress }: TaskHeartbeat,
  ): Promise<Change<TaskLease> | Refusal> {
    const task = await this.#find(caller, taskId);
    if (isRefusal(task)) return task;
    const leaseUntil = new Date(task.now + (task.lease_ms ?? 0)).toISOString();
    if (task.epoch !== epoch) return LEASE_OVER;
    if (task.state === 'cancelled' || task.run_ended_at !== null) return unchanged({ leaseUntil, isCancelled: true });
    const kept = keepTask({ tenant: task.tenant, taskId, epoch }, progress);
    return changeOf({ leaseUntil, isCancelled: false }, [kept], { refusals: { task: LEASE_OVER } });
  }

  async claimEffect(caller: Caller, taskId: string, { epoch, name }: EffectClaim): Promise<EffectState | Refusal> {
    const task = await this.#find(caller, taskId);
    if (isRefusal(task)) return task;
    if (task.run_ended_at !== null) return LEASE_OVER;
    const effect = effectOf(task, name);
    const claimed: EffectState = { state: 'claimed', idempotencyKey: logicalInvocationId(effect) };
    return this.#moveEffect({ tenant: task.tenant, taskId, epoch }, claimOf(effect), claimed);
  }

  async recordEffect(
    caller: Caller,
    taskId: string,
    { epoch, name, result }: EffectResult,
  ): Promise<EffectState | Refusal> {
    const task = await this.#find(caller, taskId);
    if (isRefusal(task)) return task;
    const { tenant } = task;
    const idempotencyKey = logicalInvocationId(effectOf(task, name));
    const outcome = JSON.stringify(redactValue(result) ?? null);
    const done: EffectState = { state: 'done', idempotencyKey, result: JSON.parse(outcome) };
    return this.#moveEffect({ tenant, taskId, epoch }, settleEffect(tenant, idempotencyKey, 'done', outcome), done);
  }

  async complete(caller: Caller, taskId: string, completion: TaskCompletion): Promise<Change | Refusal> {
    const { epoch, ...outcome } = completion;
    const claim = { taskId, epoch };
    return this.#end(caller, claim, 'done', (held) => endTask(held, 'done', reported(outcome)));
  }

  async fail(caller: Caller, taskId: string, failure: TaskFailure): Promise<Change | Refusal> {
    const { epoch, ...outcome } = failure;
    const claim = { taskId, epoch };
    return this.#end(caller, claim, 'failed', (held) => endTask(held, 'failed', reported(outcome)));
  }

  async suspend(caller: Caller, taskId: string, suspension: TaskSuspension): Promise<Change | Refusal> {
    if (isToolTask(taskId)) return TOOL_WAITS;
    const { epoch, waitsFor } = suspension;
    return this.#end(caller, { taskId, epoch }, 'suspended', (held) => suspendTask(held, reported(waitsFor)));
  }

  /** Stores the outcome and wakes the run in one unit. A report that is repeated finds that it has arrived. */
  async #end(
    caller: Caller,
    { taskId, epoch }: { readonly taskId: string; readonly epoch: number },
    state: 'done' | 'failed' | 'suspended',
    store: (held: TaskClaim) => Write,
  ): Promise<Change | Refusal> {
    const task = await this.#find(caller, taskId);
    if (isRefusal(task)) return task;
    if (!isOpen(task)) return task.epoch === epoch && task.state === state ? unchanged(undefined) : LEASE_OVER;
    const { tenant, run_id: runId } = task;
    const { hub, store: hosts } = this.#runtime;
    const tell = (): void => {
      hub.wakeWorkers(runId);
      hosts.hint([`work:${runId}`]);
    };
    return changeOf(undefined, [store({ tenant, taskId, epoch }), wake(runId)], {
      announce: [tell],
      refusals: { task: LEASE_OVER },
    });
  }

  async #find(caller: Caller, taskId: string): Promise<TaskStatusRow | Refusal> {
    const [task] = await this.#runtime.store.read<TaskStatusRow>(findTaskStatus(reachOf(caller), taskId));
    return task ?? NOT_FOUND;
  }

  /** Moves an effect and prolongs the lease. The ledger is read only for an effect that may have a result already. */
  async #moveEffect(held: TaskClaim, move: Write, state: EffectState): Promise<EffectState | Refusal> {
    const refusals = { task: LEASE_OVER, effect: NOT_CLAIMED };
    const change = changeOf(state, [keepTask(held, undefined), move], { refusals });
    const moved = await perform(this.#runtime, async () => change, { tenant: held.tenant });
    return moved === NOT_CLAIMED ? this.#recorded(held.tenant, state.idempotencyKey) : moved;
  }

  async #recorded(tenant: string, idempotencyKey: string): Promise<EffectState | Refusal> {
    const [row] = await this.#runtime.store.read<EffectRow>(findEffect(tenant, idempotencyKey));
    if (row?.state !== 'done') return NOT_CLAIMED;
    return { state: 'done', idempotencyKey, result: JSON.parse(row.outcome!) };
  }
}

function reported(value: JsonObject): string {
  return JSON.stringify(redactValue(value));
}

function reachOf({ subject, pool }: Caller): WorkerReach {
  return { tenant: subject.tenant, workspace: subject.workspace, pool };
}

/** Calls by an agent are told apart by their tasks: they belong to one node, and their effects may have one name. */
function effectOf(
  { task_id, tenant, run_id: runId, node_id: nodeId, visit }: TaskStatusRow,
  name: string,
): IntendedEffect {
  return { tenant, runId, nodeId, ...namedEffect(visit, isToolTask(task_id) ? `${task_id}:${name}` : name) };
}
