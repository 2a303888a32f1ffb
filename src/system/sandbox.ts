import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { FairQueue, type WeightOf } from './fair-queue.ts';
import type { SandboxJob, SandboxResult } from './sandbox-worker.ts';

/** Runs untrusted programs, each in a new thread that has no state and is terminated afterwards. */
export interface Sandbox {
  /**
   * Runs a program. The timeout starts when the program gets its thread; aborting the signal ends the wait at once.
   * `busy` means that the tenant has too many programs in line.
   */
  run(
    tenant: string,
    job: SandboxJob,
    timeoutMs: number,
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
  /** Runs one program; a test has its own. */
  readonly runProgram?: typeof runInThread;
}

/**
 * Makes a sandbox that runs at most `threads` programs at a time. Others wait in line, in fair order by tenant, and one
 * tenant never has all threads if there are several.
 */
export function createSandbox({ threads, weightOf, runProgram = runInThread }: SandboxOptions): Sandbox {
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
    async run(tenant, job, timeoutMs, signal) {
      if (waiting.size >= QUEUE_MAX || waiting.countOf(tenant) >= QUEUE_OF_TENANT_MAX) return { problem: 'busy' };
      await new Promise<void>((begin) => {
        waiting.push(tenant, { tenant, begin });
        beginNext();
      });
      try {
        return await runProgram(job, AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]));
      } finally {
        count(tenant, -1);
        beginNext();
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
