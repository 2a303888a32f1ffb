import { Type } from 'typebox';
import { isObject, type JsonObject } from '../../../protocol/format/json.ts';
import { noWorkerMessage } from '../../../protocol/running/worker-log.ts';
import type { WaitsFor, WorkerTypeRequest } from '../../../protocol/running/workers.ts';
import { declaredPorts } from '../../../runtime/declared-ports.ts';
import { capabilityNotProvided } from '../../../runtime/node-start.ts';
import { invalid, type NodeContext, type NodeType, type Outcome } from '../../../runtime/node-type.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { IndexedNode, OtherNodes } from '../workflows/door.ts';
import { bodyOf, declarationOf, type TaskBody } from './document.ts';
import {
  cancelTask,
  findTask,
  findWorkerTypes,
  insertTask,
  markNoWorkerWarned,
  requeueTask,
  type TimedTaskRow,
  type WorkerTypeRow,
} from './records.ts';
import { resultOf, timedOut } from './results.ts';
import { deadlineOf, isOpen, isOwnName, isServed, lookAgainAt } from './rules.ts';
import type { TaskQueue } from './task-queue.ts';
import { nextCall } from './waits.ts';

/** An attempt without a deadline looks for its outcome this often, should every wake-up get lost. */
const PATIENCE_MS = 24 * 60 * 60 * 1_000;
const ANY_CONFIG = Type.Object({}, { additionalProperties: true });

/** The node types that workers serve, as the host executes them: it hands each attempt over and sleeps. */
export class WorkerNodes {
  readonly #runtime: Pick<Runtime, 'store' | 'schemas'>;
  readonly #queue: TaskQueue;

  constructor(runtime: Pick<Runtime, 'store' | 'schemas'>, queue: TaskQueue) {
    this.#runtime = runtime;
    this.#queue = queue;
  }

  /** The implementation of every type that has a name of its own; whether it is declared is known when it is called. */
  typeOf = (typeId: string, declared: Pick<WorkerTypeRequest, 'inputs' | 'outputs'> = {}): NodeType | undefined =>
    isOwnName(typeId)
      ? {
          typeId,
          description: 'Is done by a worker.',
          role: 'side-effect',
          fansOut: true,
          config: ANY_CONFIG,
          ...declaredPorts(declared),
          run: (context) => this.#run(context),
        }
      : undefined;

  /** What a tenant has declared about nodes of a definition. */
  known = async (tenant: string, nodes: readonly IndexedNode[]): Promise<OtherNodes> => {
    const typeIds = [...new Set(nodes.map(({ node }) => node.typeId))];
    const rows = await this.#runtime.store.read<WorkerTypeRow>(findWorkerTypes(tenant, typeIds));
    const declared = new Map(rows.map((row) => [row.type_id, declarationOf(row)]));
    const problems = nodes.map(async ({ node, index }) => {
      const schema = declared.get(node.typeId)?.config;
      const found = schema ? await this.#runtime.schemas.of(tenant).validate(schema, node.config) : [];
      return found.map((message) => ({ path: `nodes[${index}].config`, message, nodeId: node.id }));
    });
    return {
      types: [...declared].flatMap(([typeId, declaration]) => this.typeOf(typeId, declaration) ?? []),
      problems: (await Promise.all(problems)).flat(),
    };
  };

  async #run(context: NodeContext): Promise<Outcome> {
    const { tenant } = context.holder;
    const task = await this.#find(context);
    const [type] = await this.#runtime.store.read<WorkerTypeRow>(findWorkerTypes(tenant, [context.node.typeId]));
    if (task?.state === 'suspended') return this.#resume(context, task, type);
    if (task && !isOpen(task)) return ended(context, task, type);
    if (!task) return type ? this.#handOver(context, type) : { failed: capabilityNotProvided(context.node.typeId) };
    return this.#wait(context, task, type);
  }

  async #find(context: NodeContext): Promise<TimedTaskRow | undefined> {
    const { tenant } = context.holder;
    const [task] = await this.#runtime.store.read<TimedTaskRow>(findTask({ tenant }, taskIdOf(context)));
    return task;
  }

  /** Puts the attempt into the queue of the workers. */
  async #handOver(context: NodeContext, type: WorkerTypeRow): Promise<Outcome> {
    const { holder, node, config, schemas, answers } = context;
    const declared = declarationOf(type);
    const inputs = namedInputs(context, declared.inputs);
    const problems = declared.inputs ? await schemas.validate(declared.inputs, inputs) : [];
    if (problems.length > 0) return invalid(`The inputs of the node do not fit: ${problems.join('; ')}.`);
    const deadline = deadlineOf(type, context.startedAt);
    await holder.commit([
      insertTask({
        task_id: taskIdOf(context),
        tenant: holder.tenant,
        workspace: holder.workspace ?? null,
        run_id: context.runId,
        node_id: node.id,
        attempt: context.attempt,
        visit: context.visit,
        type_id: node.typeId,
        pool: type.pool,
        // Another attempt does not ask again what was answered already.
        body: JSON.stringify({ config, inputs, answers, trace: holder.trace() } satisfies TaskBody),
        deadline,
      }),
    ]);
    this.#queue.tell(holder.tenant);
    if (!isServed(type.seen_at, context.now())) await warnNoWorker(context);
    return sleep(context, deadline);
  }

  /** Called again while an attempt waits for something: says what, or hands it over with what has come. */
  async #resume(context: NodeContext, task: TimedTaskRow, type: WorkerTypeRow | undefined): Promise<Outcome> {
    const next = await nextCall(context, bodyOf(task), JSON.parse(task.outcome!) as WaitsFor);
    if (!('body' in next)) return next;
    const { holder, now } = context;
    const deadline = deadlineOf(type, now());
    await holder.commit([requeueTask({ ...task, body: JSON.stringify(next.body), deadline })]);
    this.#queue.tell(holder.tenant);
    return sleep(context, deadline);
  }

  /** Called again while the attempt is not over: at its deadline, or to see whether somebody serves the type. */
  async #wait(context: NodeContext, task: TimedTaskRow, type: WorkerTypeRow | undefined): Promise<Outcome> {
    const { holder, now } = context;
    if (task.deadline !== null && now() >= task.deadline) {
      const isOurs = await holder.commit([cancelTask(holder.tenant, task.task_id)]);
      const last = isOurs ? undefined : await this.#find(context);
      return last && last.state !== 'cancelled'
        ? ended(context, last, type)
        : { failed: timedOut(context.node.typeId) };
    }
    if (task.state === 'queued' && task.is_warned === 0 && !isServed(type?.seen_at, task.now)) {
      await warnNoWorker(context);
    }
    return sleep(context, task.deadline);
  }
}

/** What leaves the host: the inputs that the definition or the declaration names, not everything that flows past. */
function namedInputs({ declared, inputs }: NodeContext, schema: JsonObject | undefined): JsonObject {
  const named = isObject(schema?.properties) ? Object.keys(schema.properties) : [];
  return {
    ...Object.fromEntries(named.filter((name) => Object.hasOwn(inputs, name)).map((name) => [name, inputs[name]])),
    ...declared,
  };
}

/** Attempts of a node are told apart by visit and number. */
function taskIdOf({ holder, runId, node, visit, attempt }: NodeContext): string {
  return `task-${sha256Hex([holder.tenant, runId, node.id, visit, attempt].join('\0')).slice(0, 40)}`;
}

/** Sleeps until the deadline, and until then looks now and then whether there is a worker. */
function sleep({ now, startedAt }: NodeContext, deadline: number | null): Outcome {
  return { sleepUntil: Math.min(deadline ?? now() + PATIENCE_MS, lookAgainAt(startedAt, now())), orWoken: true };
}

async function warnNoWorker(context: NodeContext): Promise<void> {
  const { holder, node, emit } = context;
  const payload = { level: 'warn' as const, message: noWorkerMessage(node.typeId), nodeId: node.id };
  emit({ type: 'log.appended', nodeId: node.id, payload });
  await holder.commit([markNoWorkerWarned(holder.tenant, taskIdOf(context))]);
}

async function ended(context: NodeContext, task: TimedTaskRow, type: WorkerTypeRow | undefined): Promise<Outcome> {
  const nodeId = context.node.id;
  const { logs, ...result } = await resultOf(task, type, context.schemas);
  for (const line of logs) context.emit({ type: 'log.appended', nodeId, payload: { level: 'info', ...line, nodeId } });
  return 'outputs' in result ? { done: { outputs: result.outputs } } : { failed: result.error };
}
