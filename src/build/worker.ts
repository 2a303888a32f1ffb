import { type Client, createClient, RefusedError } from '../client/index.ts';
import { platform, sleep } from '../client/machine.ts';
import { answerIn } from '../engine/people/questions.ts';
import { isObject, type JsonObject } from '../protocol/format/json.ts';
import type { TaskFailure, WaitsFor, WorkerTask, WorkerTypeRequest } from '../protocol/running/workers.ts';
import type { NodeFailure } from '../runtime/node-failure.ts';
import { type ChildOutcome, type EffectCall, fatal, type NodeCall, type OwnNode } from './define-node.ts';
import { type NodeException, printException } from './node-exception.ts';
import { checkOf, jsonSchemaOf, type ValueSchema } from './value-schema.ts';

/** Where a worker gets its attempts, and the nodes that it makes them with. */
export interface WorkerOptions {
  /** Base URL of the host. */
  readonly url: string;
  /** A key with the scope `workers:serve`. */
  readonly key: string;
  readonly nodes: readonly OwnNode[];
  /** Name of the worker, for people. */
  readonly name?: string;
  /** Pool that its types belong to; the key's own by default. */
  readonly pool?: string;
  /** Attempts at the same time; 4 by default. */
  readonly concurrency?: number;
  /** A worker that is silent for longer loses its attempts; 30 by default. */
  readonly leaseSeconds?: number;
  /** Ends the worker: it takes nothing new, and finishes what it has. */
  readonly signal?: AbortSignal;
  /** Told once the host has accepted the types of its nodes. */
  readonly onConnected?: () => void;
  /** Told of exceptions that the code of a node did not mean; by default their stacks go to the standard error. */
  readonly onException?: (exception: NodeException) => void;
}

const WAIT_S = 20;
/** Hosts come back: a worker waits for them as long as it takes. */
const PATIENT = { attempts: Number.POSITIVE_INFINITY, patienceMs: Number.POSITIVE_INFINITY, longestPauseMs: 5_000 };

/** Declares the types of its nodes to a host and makes their attempts, until the signal says stop. */
export async function runWorker(options: WorkerOptions): Promise<void> {
  const { nodes, pool, concurrency = 4, leaseSeconds = 30, name, signal, onException = printException } = options;
  const client = createClient({ url: options.url, key: options.key });
  const byType = new Map(nodes.map((node) => [node.typeId, node]));
  for (const node of nodes)
    await client.putWorkerType(node.typeId, declarationOf(node, pool), { signal, retry: PATIENT });
  options.onConnected?.();
  const working = new Set<Promise<void>>();
  const request = { types: [...byType.keys()], waitSeconds: WAIT_S, leaseSeconds, ...(name ? { worker: name } : {}) };
  while (!signal?.aborted) {
    const max = concurrency - working.size;
    const { tasks } = await client
      .claimWorkerTasks({ ...request, max }, { signal, retry: PATIENT })
      .catch((error) => (signal?.aborted ? { tasks: [] } : Promise.reject(error)));
    for (const task of tasks) {
      const attempt = new Attempt(client, byType.get(task.typeId)!, task, { leaseSeconds, onException }).make();
      const tracked = attempt.finally(() => working.delete(tracked));
      working.add(tracked);
    }
    while (working.size >= concurrency) await Promise.race(working);
  }
  await Promise.all(working);
}

function declarationOf(
  { description, timeoutMs, tool, safety, ...node }: OwnNode,
  pool: string | undefined,
): WorkerTypeRequest {
  return {
    description,
    ...schemaMember('config', node.config),
    ...schemaMember('inputs', node.inputs),
    ...schemaMember('outputs', node.outputs),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(pool === undefined ? {} : { pool }),
    ...(tool ? { tool: safety } : {}),
  };
}

function schemaMember(name: string, schema: ValueSchema | undefined): object {
  // A schema is an object of a class of its own; what is sent is plain JSON.
  return schema === undefined ? {} : { [name]: JSON.parse(JSON.stringify(jsonSchemaOf(schema))) };
}

/** One attempt at a node, while this worker has its lease. */
class Attempt {
  readonly #client: Client;
  readonly #node: OwnNode;
  readonly #task: WorkerTask;
  readonly #leaseMs: number;
  readonly #onException: NonNullable<WorkerOptions['onException']>;
  readonly #over = new AbortController();
  readonly #logs: { message: string; fields?: JsonObject }[] = [];
  readonly #counts = new Map<string, number>();
  readonly #effects = new Set<Promise<unknown>>();
  readonly #suspended = Promise.withResolvers<{ readonly waitsFor: WaitsFor }>();
  #answers = 0;
  #children = 0;
  #progress: string | undefined;

  constructor(
    client: Client,
    node: OwnNode,
    task: WorkerTask,
    { leaseSeconds, onException }: Required<Pick<WorkerOptions, 'leaseSeconds' | 'onException'>>,
  ) {
    this.#client = client;
    this.#node = node;
    this.#task = task;
    this.#leaseMs = leaseSeconds * 1_000;
    this.#onException = onException;
  }

  /** Calls the code and reports what became of it, unless the lease is over: then it is another worker's. */
  async make(): Promise<void> {
    const ended = new AbortController();
    const heart = this.#beat(ended.signal);
    try {
      await this.#reportOutcome();
    } finally {
      ended.abort();
      await heart;
    }
  }

  async #reportOutcome(): Promise<void> {
    const { taskId, epoch } = this.#task;
    try {
      const result = await Promise.race([this.#call(), this.#suspended.promise]);
      // An effect that is under way is let finish, or the next call would attempt it a second time.
      await Promise.allSettled(this.#effects);
      if ('waitsFor' in result) await this.#held(() => this.#client.suspendWorkerTask(taskId, { epoch, ...result }));
      else await this.#held(() => this.#client.completeWorkerTask(taskId, { epoch, ...result, logs: this.#logs }));
    } catch (error) {
      if (error instanceof LeaseOver) return;
      // A host that cannot be reached, or does not want to know, gives the attempt to another worker.
      await this.#held(() => this.#client.failWorkerTask(taskId, this.#failure(error))).catch(() => {});
    }
  }

  async #call(): Promise<{ readonly outputs: JsonObject }> {
    const { config, inputs, outputs, typeId } = this.#node;
    const given = await Promise.all([checkOf(config)(this.#task.config), checkOf(inputs)(this.#task.inputs)]);
    const misfit = given.find((each) => 'problem' in each);
    if (misfit && 'problem' in misfit) throw fatal('validation_error', `${typeId}: ${misfit.problem}.`);
    const [settings, ports] = given.map((each) => ('value' in each ? each.value : undefined));
    const result = await checkOf(outputs)((await this.#node.run(this.#contextOf(settings, ports) as never)) ?? {});
    if ('problem' in result)
      throw fatal('invalid_outputs', `${typeId} returned outputs that do not fit: ${result.problem}.`);
    if (!isObject(result.value)) throw fatal('invalid_outputs', `${typeId} returned outputs that are no object.`);
    return { outputs: result.value };
  }

  #contextOf(config: unknown, inputs: unknown): Omit<NodeCall<unknown, unknown>, 'tenant'> {
    const { runId, nodeId, attempt } = this.#task;
    const { signal } = this.#over;
    const effect: NodeCall<unknown, unknown>['effect'] = (name, perform) => {
      const performed = this.#effect(name, perform);
      this.#effects.add(performed);
      return performed.finally(() => this.#effects.delete(performed));
    };
    const until = (time: number): Promise<void> => this.#until(time);
    return {
      ...{ config, inputs, runId, nodeId, attempt, signal, effect },
      now: () => platform.now(),
      sleep: async (ms) => until(await effect('sleep', () => platform.now() + ms)),
      sleepUntil: until,
      ask: async (question) => answerIn(await this.#answer({ answer: question })),
      waitForEvent: (eventType, correlation, { timeoutMs } = {}) =>
        this.#answer({ event: { eventType, correlation, ...(timeoutMs === undefined ? {} : { timeoutMs }) } }),
      runWorkflow: (workflowId, given) => this.#child({ workflowId, ...(given ? { inputs: given } : {}) }),
      stream: (text) => {
        this.#progress = text.slice(0, PROGRESS_MAX);
      },
      log: (message, fields) => void this.#logs.push({ message, ...(fields ? { fields } : {}) }),
    };
  }

  #answer(waitsFor: WaitsFor): Promise<unknown> {
    const { answers = [] } = this.#task;
    const place = this.#answers++;
    return place < answers.length ? Promise.resolve(answers[place]) : this.#suspend(waitsFor);
  }

  #child(child: NonNullable<WaitsFor['child']>): Promise<ChildOutcome> {
    const ended = this.#task.children?.[this.#children++];
    return ended ? Promise.resolve(ended) : this.#suspend({ child });
  }

  /** Short waits keep the lease; for long ones the attempt is given back. */
  #until(time: number): Promise<void> {
    const left = time - platform.now();
    if (left <= 0 || time <= Date.parse(this.#task.waitedUntil ?? '')) return Promise.resolve();
    if (left <= SHORT_WAIT_MS) return sleep(platform, left, this.#over.signal);
    return this.#suspend({ until: new Date(time).toISOString() });
  }

  /** Ends this call of the code, whose promise stays open: it is called again from the start, perhaps elsewhere. */
  #suspend(waitsFor: WaitsFor): Promise<never> {
    this.#suspended.resolve({ waitsFor });
    return new Promise(() => {});
  }

  async #effect<T>(name: string, perform: (call: EffectCall) => T | Promise<T>): Promise<T> {
    const { taskId, epoch } = this.#task;
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    const claim = { epoch, name: count === 1 ? name : `${name}#${count}` };
    const { state, idempotencyKey, result } = await this.#held(() => this.#client.claimWorkerEffect(taskId, claim));
    if (state === 'done') return result as T;
    const { traceparent, tracestate } = this.#task;
    const traceHeaders = { ...(traceparent ? { traceparent } : {}), ...(tracestate ? { tracestate } : {}) };
    const performed = await perform({ idempotencyKey, traceHeaders, signal: this.#over.signal });
    const recorded = await this.#held(() =>
      this.#client.recordWorkerEffect(taskId, { ...claim, result: performed ?? null }),
    );
    return recorded.result as T;
  }

  /** Keeps the lease while the code is working, and learns whether the result is still wanted. */
  async #beat(ended: AbortSignal): Promise<void> {
    const { taskId, epoch } = this.#task;
    while (!ended.aborted) {
      await sleep(platform, this.#leaseMs / 3, ended).catch(() => {});
      if (ended.aborted) return;
      const beat = { epoch, ...(this.#progress === undefined ? {} : { progress: this.#progress }) };
      // A heartbeat that does not arrive is no answer: the next one may.
      const isOver = await this.#client.heartbeatWorkerTask(taskId, beat).then(
        ({ isCancelled }) => isCancelled,
        (error) => error instanceof RefusedError && error.status === 409,
      );
      if (isOver) this.#over.abort(new LeaseOver());
    }
  }

  /** Does something that only the holder of the lease may do; what the host finds wrong with it is an error. */
  async #held<T>(ask: () => Promise<T>): Promise<T> {
    this.#over.signal.throwIfAborted();
    try {
      return await ask();
    } catch (error) {
      if (error instanceof RefusedError && WRONG.has(error.status)) throw fatal(error.code, error.message);
      const over = new LeaseOver();
      this.#over.abort(over);
      throw over;
    }
  }

  #failure(error: unknown): TaskFailure {
    const { epoch, runId, nodeId, typeId } = this.#task;
    // Also a failure that another copy of this package made.
    const isNodeFailure = error instanceof Error && error.name === 'NodeFailure' && 'error' in error;
    if (isNodeFailure) return { epoch, error: (error as NodeFailure).error, logs: this.#logs };
    this.#onException({ runId, nodeId, typeId, error });
    return { epoch, error: { code: 'node_failed', message: textOf(error) }, logs: this.#logs };
  }
}

const PROGRESS_MAX = 1_000;
const SHORT_WAIT_MS = 5_000;
/** Statuses of requests that would be as wrong the next time. */
const WRONG: ReadonlySet<number> = new Set([400, 413, 422]);

function textOf(error: unknown): string {
  return (error instanceof Error && error.message) || 'The node failed.';
}

/** The lease is over, or the task is: whatever this worker does now is nobody's business. */
class LeaseOver extends Error {
  override readonly name = 'LeaseOver';
}
