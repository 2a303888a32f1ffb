import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { SandboxAnswer, SandboxJob } from './sandbox-worker.ts';

/** Runs programs of strangers, each in a thread of its own that knows nothing and is gone afterwards. */
export interface Sandbox {
  /** Time counts from when the program gets its thread; with the signal nobody waits any longer. */
  run(
    job: SandboxJob,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<SandboxAnswer | { readonly problem: 'timeout' | 'busy' }>;
}

const WAITING_MAX = 1_000;
/** The thread itself needs little; what the program may take is bounded inside. */
const THREAD_LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };
/** Sources run as they are, and so does what was built from them. */
const PROGRAM = new URL(`./sandbox-worker${extname(import.meta.url)}`, import.meta.url);

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
      if (waiting.length >= WAITING_MAX) return { problem: 'busy' };
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
      worker.once('error', () => resolve({ problem: 'memory', message: 'The program needs too much memory.' }));
      worker.once('exit', () => resolve({ problem: 'error', message: 'The program ended its thread.' }));
    });
  } finally {
    await worker.terminate();
  }
}
