import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { SandboxJob, SandboxResult } from './sandbox-worker.ts';

/** Runs untrusted programs, each in a new thread that has no state and is terminated afterwards. */
export interface Sandbox {
  /**
   * Runs a program. The timeout starts when the program gets its thread; aborting the signal ends the wait at once.
   * `busy` means that the queue is full.
   */
  run(
    job: SandboxJob,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<SandboxResult | { readonly problem: 'timeout' | 'busy' }>;
}

const QUEUE_MAX = 1_000;
/** Limits of the thread itself, which needs little; the program's memory is limited inside the interpreter. */
const THREAD_LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };
/** The worker's file, as TypeScript source or as built JavaScript, like this file. */
const PROGRAM = new URL(`./sandbox-worker${extname(import.meta.url)}`, import.meta.url);

/** Makes a sandbox that runs at most `threads` programs at a time; others wait in line. */
export function createSandbox({ threads }: { readonly threads: number }): Sandbox {
  const waiting: (() => void)[] = [];
  let running = 0;
  const enter = async (): Promise<void> => {
    if (running >= threads) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
  };
  const leave = (): void => {
    const next = waiting.shift();
    if (next) next();
    else running--;
  };
  return {
    async run(job, timeoutMs, signal) {
      if (waiting.length >= QUEUE_MAX) return { problem: 'busy' };
      await enter();
      try {
        return await runInThread(job, AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]));
      } finally {
        leave();
      }
    },
  };
}

async function runInThread(job: SandboxJob, signal: AbortSignal): ReturnType<Sandbox['run']> {
  if (signal.aborted) return { problem: 'timeout' };
  const worker = new Worker(PROGRAM, {
    workerData: job,
    env: {},
    execArgv: [],
    stdin: false,
    stdout: true,
    stderr: true,
    resourceLimits: THREAD_LIMITS,
  });
  try {
    return await new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve({ problem: 'timeout' }), { once: true });
      worker.once('message', resolve);
      worker.once('error', () => resolve({ problem: 'memory', message: 'The program used too much memory.' }));
      worker.once('exit', () => resolve({ problem: 'error', message: 'The program stopped without a result.' }));
    });
  } finally {
    await worker.terminate();
  }
}
