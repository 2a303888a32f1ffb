import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { isObject, type JsonObject } from '../../../protocol/format/json.ts';
import { noWorkerMessage } from '../../../protocol/running/worker-log.ts';
import { type Change, changeOf, perform } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import {
  type CallableTool,
  nodeArguments,
  ownTraits,
  ToolAwaited,
  type ToolCaller,
  ToolFailure,
  type ToolSource,
} from '../../../runtime/tools.ts';
import type { Visibility } from '../../../store/log.ts';
import { declarationOf, type TaskBody } from './document.ts';
import {
  cancelTask,
  findTask,
  findWorkerTypes,
  insertTask,
  markNoWorkerWarned,
  type TimedTaskRow,
  type WorkerTypeRow,
} from './records.ts';
import { resultOf, timedOut } from './results.ts';
import { deadlineOf, isOpen, isOwnName, isServed, lookAgainAt, toolTaskId } from './rules.ts';
import type { TaskQueue } from './task-queue.ts';

const SCOPE = 'openwop';
const ANY_OBJECT = { type: 'object' };
/** What came of cancelling a task that a worker has reported on. */
const ENDED = refuse('conflict', 'The task has ended.');

/** What tools of workers use. */
type ToolRuntime = Pick<Runtime, 'store' | 'mutex' | 'schemas' | 'clock'>;

/**
 * The types of workers that agents may call. A call is a task like any other: it is handed over once, and the agent
 * sleeps until a worker has reported, so neither a host nor a worker that dies loses or repeats it.
 */
export class WorkerTools implements ToolSource {
  readonly scope = SCOPE;
  readonly kind = 'node-pack';
  readonly #runtime: ToolRuntime;
  readonly #queue: TaskQueue;

  constructor(runtime: ToolRuntime, queue: TaskQueue) {
    this.#runtime = runtime;
    this.#queue = queue;
  }

  async find({ tenant }: Visibility, name: string): Promise<CallableTool | undefined> {
    const typeId = name.slice(SCOPE.length + 1);
    if (!isOwnName(typeId)) return undefined;
    const [row] = await this.#runtime.store.read<WorkerTypeRow>(findWorkerTypes(tenant, [typeId]));
    return row && this.#toolOf(row);
  }

  async list({ tenant }: Visibility): Promise<readonly CallableTool[]> {
    const rows = await this.#runtime.store.read<WorkerTypeRow>(findWorkerTypes(tenant));
    return rows.flatMap((row) => this.#toolOf(row) ?? []);
  }

  #toolOf(row: WorkerTypeRow): CallableTool | undefined {
    const { tool: safety, description, config = {}, inputs = ANY_OBJECT } = declarationOf(row);
    if (safety === undefined) return undefined;
    return {
      name: `${SCOPE}:${row.type_id}`,
      title: row.type_id,
      description,
      inputSchema: nodeArguments(config, inputs),
      transport: 'http',
      ...ownTraits(safety),
      call: (args, by) => this.#call(row, args, by),
    };
  }

  async #call(type: WorkerTypeRow, args: JsonObject, by: ToolCaller): Promise<JsonObject> {
    const task = (await this.#find(by)) ?? (await this.#handOver(type, args, by));
    return isOpen(task) ? this.#wait(type, task, by) : this.#outputsOf(type, task);
  }

  async #outputsOf(type: WorkerTypeRow, task: TimedTaskRow): Promise<JsonObject> {
    const result = await resultOf(task, type, this.#runtime.schemas.of(task.tenant));
    if ('error' in result) throw new ToolFailure(result.error.message);
    return result.outputs;
  }

  async #find({ tenant, effectId }: ToolCaller): Promise<TimedTaskRow | undefined> {
    const [task] = await this.#runtime.store.read<TimedTaskRow>(findTask({ tenant }, toolTaskId(effectId)));
    return task;
  }

  async #handOver(type: WorkerTypeRow, args: JsonObject, by: ToolCaller): Promise<TimedTaskRow> {
    const { tenant, workspace = null, runId, nodeId, effectId } = by;
    const [config, inputs] = [args.config, args.inputs].map((given) => (isObject(given) ? given : {}));
    const task = insertTask({
      task_id: toolTaskId(effectId),
      tenant,
      workspace,
      run_id: runId,
      node_id: nodeId,
      attempt: 0,
      visit: 0,
      type_id: type.type_id,
      pool: type.pool,
      body: JSON.stringify({ config: config!, inputs: inputs! } satisfies TaskBody),
      deadline: deadlineOf(type, this.#runtime.clock.now()),
    });
    await this.#perform(tenant, changeOf(undefined, [task], { announce: [() => this.#queue.tell(tenant)] }));
    return (await this.#find(by))!;
  }

  /** The call is made again when a worker has reported, at the deadline, and now and then to see whether there is one. */
  async #wait(type: WorkerTypeRow, task: TimedTaskRow, by: ToolCaller): Promise<JsonObject> {
    const { task_id: taskId, tenant, deadline, created_at: createdAt } = task;
    const now = this.#runtime.clock.now();
    if (deadline !== null && now >= deadline) {
      const cancel = changeOf(undefined, [cancelTask(tenant, taskId)], { refusals: { task: ENDED } });
      const cancelled = await this.#perform(tenant, cancel);
      // A worker may have reported since the task was read: what it was told is stored has to count.
      const last = cancelled === ENDED ? await this.#find(by) : undefined;
      if (last) return this.#outputsOf(type, last);
      throw new ToolFailure(timedOut(task.type_id).message);
    }
    const mustWarn = task.state === 'queued' && task.is_warned === 0 && !isServed(type.seen_at, task.now);
    if (mustWarn) await this.#perform(tenant, changeOf(undefined, [markNoWorkerWarned(tenant, taskId)]));
    const until = Math.min(deadline ?? Number.POSITIVE_INFINITY, lookAgainAt(createdAt, now));
    throw new ToolAwaited(until, mustWarn ? noWorkerMessage(task.type_id) : undefined);
  }

  #perform<T>(tenant: string, change: Change<T>): Promise<T | Refusal> {
    return perform(this.#runtime, async () => change, { tenant });
  }
}
