import type { Worker } from 'node:worker_threads';
import type { Cancel, Clock } from './clock.ts';

/** How much a thread may use for one job. */
export interface ThreadLimits {
  /** Time on a processor: what the job itself costs, however busy the machine is. */
  readonly processorMs: number;
  /** Time on the clock, after which a machine that gives the thread too little of a processor is not waited for. */
  readonly waitMs: number;
}

/** Why a job is ended: it costs too much, or the machine did not get to it. */
export type ThreadExcess = 'used-up' | 'starved';

/** Time on the clock within which a thread gets what it is owed, on all but a machine that has come to a halt. */
export const THREAD_WAIT_MS = 60_000;
/** Most jobs are done by then, and cost no look at the thread at all. */
const LOOK_MS = 100;

/**
 * Calls `end` once the thread has used its processor time for a job that begins now, or has waited too long for it. A
 * clock alone cannot tell an expensive job from a busy machine.
 */
export function limitThread(
  worker: Pick<Worker, 'cpuUsage'>,
  clock: Pick<Clock, 'after' | 'soon'>,
  { processorMs, waitMs }: ThreadLimits,
  end: (excess: ThreadExcess) => void,
): Cancel {
  let isOver = false;
  let before: number | undefined;
  // A reply that has arrived while the caller's thread was busy is still in time.
  const finish = (excess: ThreadExcess): void => clock.soon(() => isOver || end(excess));
  const look = async (): Promise<void> => {
    const used = await processorMsOf(worker);
    if (isOver) return;
    before ??= used;
    const leftMs = processorMs - ((used ?? 0) - (before ?? 0));
    // It cannot use more than what passes until then.
    if (leftMs > 0) cancelLook = clock.after(used === undefined ? LOOK_MS : Math.max(LOOK_MS, leftMs), look);
    else finish('used-up');
  };
  let cancelLook = clock.after(LOOK_MS, look);
  const cancelWait = clock.after(waitMs, () => finish('starved'));
  return () => {
    isOver = true;
    cancelWait();
    cancelLook();
  };
}

/** The processor time of a thread; undefined before it runs and once it has ended. */
async function processorMsOf(worker: Pick<Worker, 'cpuUsage'>): Promise<number | undefined> {
  try {
    const { user, system } = await worker.cpuUsage();
    return (user + system) / 1_000;
  } catch {
    return undefined;
  }
}
