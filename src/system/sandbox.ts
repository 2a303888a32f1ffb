import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from './clock.ts';
import { FairQueue, type WeightOf } from './fair-queue.ts';
import { realClock } from './real.ts';
import type { SandboxJob, SandboxResult, SandboxThreadData } from './sandbox-worker.ts';
import { TemporaryFailure } from './temporary-failure.ts';
import { threadEnvironment } from './thread-environment.ts';
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
const INTERPRETER = '@jitl/quickjs-wasmfile-release-sync/wasm';

/** The one function that is used here; TypeScript ships its types only with those of browsers. */
declare const WebAssembly: { compile(bytes: Uint8Array): Promise<object> };

/** How a sandbox is set up. */
interface SandboxOptions {
  /** Programs that run at the same time. */
  readonly threads: number;
  readonly weightOf?: WeightOf;
  readonly clock?: Pick<Clock, 'after' | 'soon'>;
  /** Runs one program; a test has its own. */
  readonly runProgram?: RunProgram;
}

/**
 * Makes a sandbox that runs at most `threads` programs at a time. Others wait in line, in fair order by tenant, and one
 * tenant never has all threads if there are several.
 */
export function createSandbox({
  threads,
  weightOf,
  clock = realClock,
  runProgram = threadRunner(),
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

/** Runs one program that has its turn. */
type RunProgram = (
  job: SandboxJob,
  signal: AbortSignal,
  clock: Pick<Clock, 'after' | 'soon'>,
  limits: ThreadLimits,
) => ReturnType<Sandbox['run']>;

/** Runs programs in threads. The first one compiles the interpreter; all of them share its machine code. */
function threadRunner(): RunProgram {
  let interpreter: Promise<object> | undefined;
  return async (job, signal, clock, limits) => {
    interpreter ??= compileInterpreter().catch((error: unknown) => {
      interpreter = undefined;
      throw new TemporaryFailure('The interpreter of programs could not be loaded.', { cause: error });
    });
    return runInThread({ job, interpreter: await interpreter }, signal, clock, limits);
  };
}

/** The file is that of the package which the threads import. */
async function compileInterpreter(): Promise<object> {
  return WebAssembly.compile(await readFile(new URL(import.meta.resolve(INTERPRETER))));
}

async function runInThread(
  workerData: SandboxThreadData,
  signal: AbortSignal,
  clock: Pick<Clock, 'after' | 'soon'>,
  limits: ThreadLimits,
): ReturnType<Sandbox['run']> {
  if (signal.aborted) return { problem: 'timeout' };
  const worker = new Worker(PROGRAM, {
    workerData,
    env: threadEnvironment(),
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
