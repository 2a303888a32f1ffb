import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../system/clock.ts';
import { FairQueue, type WeightOf } from '../../system/fair-queue.ts';
import {
  HOST_LINE,
  type SchemaReply,
  type SchemaRequest,
  type SchemaValidator,
  validatorFrom,
} from './schema-validator.ts';
import type { ThreadMessage } from './schema-worker.ts';

const THREADS = 2;
const DEADLINE_MS = 4_000;
const START_MS = 30_000;
const THREAD_LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 };
/** The worker's file, as TypeScript source or as built JavaScript, like this file. */
const PROGRAM = new URL(`./schema-worker${extname(import.meta.url)}`, import.meta.url);

const TOO_SLOW: SchemaReply = { unusable: `the schema takes longer than ${DEADLINE_MS} ms to evaluate` };
const TOO_LARGE: SchemaReply = { unusable: 'the schema takes too much memory to evaluate' };
const STOPPED: SchemaReply = { unusable: 'the host is stopping' };

/**
 * A validator that compiles and evaluates schemas in threads. Each thread answers one question at a time and is
 * terminated when it takes too long or too much memory, so that only that question fails. Questions wait in fair order
 * by tenant, and one tenant never has all threads.
 */
export function threadedSchemaValidator(clock: Pick<Clock, 'after' | 'soon'>, weightOf?: WeightOf): SchemaValidator {
  const threads = Array.from({ length: THREADS }, () => new SchemaThread(clock));
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
  #worker: Worker | undefined;
  #settle: (reply: SchemaReply) => void = () => {};
  #isClosed = false;

  constructor(clock: Pick<Clock, 'after' | 'soon'>) {
    this.#clock = clock;
  }

  /** Answers a question. The deadline begins when the thread is ready for it. */
  async answer(request: SchemaRequest): Promise<SchemaReply> {
    if (!this.#worker && !this.#isClosed) await this.#reply(START_MS, () => this.#start());
    if (this.#isClosed) return STOPPED;
    return this.#reply(DEADLINE_MS, () => this.#worker?.postMessage(request));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#worker?.terminate();
  }

  #start(): void {
    const worker = new Worker(PROGRAM, {
      env: {},
      execArgv: [],
      stdin: false,
      stdout: true,
      stderr: true,
      resourceLimits: THREAD_LIMITS,
    });
    worker.on('message', (message: ThreadMessage) => this.#settle(message === 'ready' ? { problems: [] } : message));
    // Out of memory is an error, and an exit follows every error.
    worker.on('error', () => {});
    worker.on('exit', () => {
      this.#worker = undefined;
      this.#settle(this.#isClosed ? STOPPED : TOO_LARGE);
    });
    // A thread that waits for questions must not keep the process alive.
    worker.unref();
    this.#worker = worker;
  }

  async #reply(deadlineMs: number, send: () => void): Promise<SchemaReply> {
    let cancel = (): void => {};
    const reply = await new Promise<SchemaReply>((resolve) => {
      this.#settle = resolve;
      // A reply that has arrived while this thread was busy is still in time.
      cancel = this.#clock.after(deadlineMs, () => this.#clock.soon(() => resolve(TOO_SLOW)));
      send();
    });
    cancel();
    this.#settle = () => {};
    if (reply === TOO_SLOW) await this.#worker?.terminate();
    return reply;
  }
}
