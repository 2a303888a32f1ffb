import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../system/clock.ts';
import { FairQueue, type WeightOf } from '../../system/fair-queue.ts';
import { threadEnvironment } from '../../system/thread-environment.ts';
import { limitThread, THREAD_WAIT_MS, type ThreadExcess, type ThreadLimits } from '../../system/thread-limit.ts';
import {
  HOST_LINE,
  type SchemaReply,
  type SchemaRequest,
  type SchemaValidator,
  validatorFrom,
} from './schema-validator.ts';
import type { ThreadMessage } from './schema-worker.ts';

const THREADS = 2;
const LIMITS: ThreadLimits = { processorMs: 2_000, waitMs: THREAD_WAIT_MS };
const THREAD_LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 };
/** The worker's file, as TypeScript source or as built JavaScript, like this file. */
const PROGRAM = new URL(`./schema-worker${extname(import.meta.url)}`, import.meta.url);

const TOO_LARGE: SchemaReply = { unusable: 'the schema takes too much memory to evaluate' };
const STOPPED: SchemaReply = { postponed: 'the host is stopping' };
const STARVED: SchemaReply = { postponed: 'the machine is too busy to evaluate a schema' };
const NOT_STARTED: SchemaReply = { postponed: 'the thread that evaluates schemas does not start' };

/** How questions are answered. */
interface ThreadOptions {
  readonly weightOf?: WeightOf;
  /** What one question may cost; a test has its own. */
  readonly limits?: ThreadLimits;
}

/**
 * A validator that compiles and evaluates schemas in threads. Each thread answers one question at a time and is
 * terminated when it takes too much processor time or memory, so that only that question fails. Questions wait in fair order
 * by tenant, and one tenant never has all threads.
 */
export function threadedSchemaValidator(
  clock: Pick<Clock, 'after' | 'soon'>,
  { weightOf, limits = LIMITS }: ThreadOptions = {},
): SchemaValidator {
  const threads = Array.from({ length: THREADS }, () => new SchemaThread(clock, limits));
  const idle = [...threads];
  const waiting = new FairQueue<{ readonly tenant: string; begin(thread: SchemaThread): void }>(weightOf);
  const busy = new Map<string, number>();
  const mayHaveOne = (tenant: string): boolean => tenant === HOST_LINE || (busy.get(tenant) ?? 0) < THREADS - 1;
  const beginNext = (): void => {
    while (idle.length > 0) {
      const next = waiting.shift(mayHaveOne);
      if (!next) return;
      busy.set(next.tenant, (busy.get(next.tenant) ?? 0) + 1);
      next.begin(idle.pop()!);
    }
  };
  const giveBack = (tenant: string, thread: SchemaThread): void => {
    idle.push(thread);
    const left = busy.get(tenant)! - 1;
    if (left > 0) busy.set(tenant, left);
    else busy.delete(tenant);
    beginNext();
  };
  const answer = async (request: SchemaRequest, tenant: string): Promise<SchemaReply> => {
    const thread = await new Promise<SchemaThread>((begin) => {
      waiting.push(tenant, { tenant, begin });
      beginNext();
    });
    try {
      return await thread.answer(request);
    } finally {
      giveBack(tenant, thread);
    }
  };
  const close = async (): Promise<void> => {
    await Promise.all(threads.map((thread) => thread.close()));
  };
  return validatorFrom(answer, close);
}

/** One thread, which is started with the first question and again after it was terminated. */
class SchemaThread {
  readonly #clock: Pick<Clock, 'after' | 'soon'>;
  readonly #limits: ThreadLimits;
  #worker: Worker | undefined;
  #settle: (message: ThreadMessage | 'gone') => void = () => {};
  #isClosed = false;

  constructor(clock: Pick<Clock, 'after' | 'soon'>, limits: ThreadLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Answers a question. Its limits count from when the thread is ready for it. */
  async answer(request: SchemaRequest): Promise<SchemaReply> {
    if (this.#isClosed) return STOPPED;
    if (!this.#worker) {
      this.#worker = this.#start();
      const started = await this.#reply(this.#worker, { ...this.#limits, processorMs: this.#limits.waitMs });
      if (started !== 'ready') return this.#isClosed ? STOPPED : NOT_STARTED;
    }
    return this.#ask(this.#worker, request);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#worker?.terminate();
  }

  async #ask(worker: Worker, request: SchemaRequest): Promise<SchemaReply> {
    const reply = this.#reply(worker, this.#limits);
    worker.postMessage(request);
    const message = await reply;
    if (typeof message === 'object') return message;
    if (this.#isClosed) return STOPPED;
    if (message === 'used-up') return tooSlow(this.#limits);
    return message === 'starved' ? STARVED : TOO_LARGE;
  }

  #start(): Worker {
    const worker = new Worker(PROGRAM, {
      env: threadEnvironment(),
      execArgv: [],
      stdin: false,
      stdout: true,
      stderr: true,
      resourceLimits: THREAD_LIMITS,
    });
    worker.on('message', (message: ThreadMessage) => this.#settle(message));
    // Out of memory is an error, and an exit follows every error.
    worker.on('error', () => {});
    worker.on('exit', () => {
      this.#worker = undefined;
      this.#settle('gone');
    });
    // A thread that waits for questions must not keep the process alive.
    worker.unref();
    return worker;
  }

  /** What the thread says next. One that exceeds its limits is terminated and says nothing more. */
  async #reply(worker: Worker, limits: ThreadLimits): Promise<ThreadMessage | ThreadExcess | 'gone'> {
    let cancel = (): void => {};
    const message = await new Promise<ThreadMessage | ThreadExcess | 'gone'>((resolve) => {
      this.#settle = resolve;
      cancel = limitThread(worker, this.#clock, limits, resolve);
    });
    cancel();
    this.#settle = () => {};
    if (message === 'used-up' || message === 'starved') await worker.terminate();
    return message;
  }
}

function tooSlow({ processorMs }: ThreadLimits): SchemaReply {
  return { unusable: `the schema takes more than ${processorMs} ms of processor time to evaluate` };
}
