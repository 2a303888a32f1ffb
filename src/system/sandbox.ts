import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from './clock.ts';
import { FairQueue, type WeightOf } from './fair-queue.ts';
import { realClock } from './real.ts';
import type { SandboxJob, SandboxResult } from './sandbox-worker.ts';
import { TemporaryFailure } from './temporary-failure.ts';
import { limitThread, THREAD_WAIT_MS, type ThreadLimits } from './thread-limit.ts';

/** Runs untrusted programs, each in a new thread that has no state and is terminated afterwards. */
export interface Sandbox {
  /**
   * Runs a program, for so many milliseconds of processor time; aborting the signal ends the wait at once. `busy` means
   * that the tenant has too many programs in line. Throws TemporaryFailure on a machine that does not get to it.
   */
  run(
    tenant: string,
    job: SandboxJob,
    processorMs: number,
    signal: AbortSignal,
  ): Promise<SandboxResult | { readonly problem: 'timeout' | 'busy' }>;
}

/** Programs in line, of all tenants and of one. */
const QUEUE_MAX = 1_000;
const QUEUE_OF_TENANT_MAX = 500;
/** Limits of the thread itself, which needs little; the program's memory is limited inside the interpreter. */
const THREAD_LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };
/** The worker's file, as TypeScript source or as built JavaScript, like this file. */
const PROGRAM = new URL(`./sandbox-worker${extname(import.meta.url)}`, import.meta.url);

/** How a sandbox is set up. */
interface SandboxOptions {
  /** Programs that run at the same time. */
  readonly threads: number;
  readonly weightOf?: WeightOf;
  readonly clock?: Pick<Clock, 'after' | 'soon'>;
  /** Runs one program; a test has its own. */
  readonly runProgram?: typeof runInThread;
}

/**
 * Makes a sandbox that runs at most `threads` programs at a time. Others wait in line, in fair order by tenant, and one
 * tenant never has all threads if there are several.
 */
export function createSandbox({
  threads,
  weightOf,
  clock = realClock,
  runProgram = runInThread,
}: SandboxOptions): Sandbox {
  const waiting = new FairQueue<{ readonly tenant: string; begin(): void }>(weightOf);
  const running = new Map<string, number>();
  let total = 0;
  const ofTenant = (tenant: string): number => running.get(tenant) ?? 0;
  const count = (tenant: string, change: 1 | -1): void => {
    total += change;
    if (ofTenant(tenant) + change === 0) running.delete(tenant);
    else running.set(tenant, ofTenant(tenant) + change);
  };
  const beginNext = (): void => {
    while (total < threads) {
      const next = waiting.shift((tenant) => ofTenant(tenant) < Math.max(1, threads - 1));
      if (!next) return;
      count(next.tenant, 1);
      next.begin();
    }
  };
  return {
    async run(tenant, job, processorMs, signal) {
      if (waiting.size >= QUEUE_MAX || waiting.countOf(tenant) >= QUEUE_OF_TENANT_MAX) return { problem: 'busy' };
      await new Promise<void>((begin) => {
        waiting.push(tenant, { tenant, begin });
        beginNext();
      });
      try {
        return await runProgram(job, signal, clock, { processorMs, waitMs: processorMs + THREAD_WAIT_MS });
      } finally {
        count(tenant, -1);
        beginNext();
      }
    },
  };
}

async function runInThread(
  job: SandboxJob,
  signal: AbortSignal,
  clock: Pick<Clock, 'after' | 'soon'>,
  limits: ThreadLimits,
): ReturnType<Sandbox['run']> {
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
  let cancel = (): void => {};
  try {
    return await new Promise((resolve, reject) => {
      cancel = limitThread(worker, clock, limits, (excess) => {
        if (excess === 'used-up') resolve({ problem: 'timeout' });
        else reject(new TemporaryFailure('The machine is too busy to run a program.'));
      });
      signal.addEventListener('abort', () => resolve({ problem: 'timeout' }), { once: true });
      worker.once('message', resolve);
      worker.once('error', () => resolve({ problem: 'memory', message: 'The program used too much memory.' }));
      worker.once('exit', () => resolve({ problem: 'error', message: 'The program stopped without a result.' }));
    });
  } finally {
    cancel();
    await worker.terminate();
  }
}
