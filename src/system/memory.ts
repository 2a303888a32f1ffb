import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Cancel, Clock } from './clock.ts';

const CHECK_EVERY_MS = 3_000;
/**
 * Checks in a row that must find the process idle: compiled code goes with the garbage, so whoever comes back after a
 * short rest would find the process as slow as after its start.
 */
const IDLE_CHECKS = 100;
/** Heap growth since the last collection below which another one is not worthwhile. */
const GROWTH_BYTES = 32 * 1_024 * 1_024;

/**
 * Runs a full garbage collection when the process has been idle and its heap has grown. V8 alone would keep the memory of
 * start-up or of a busy hour for as long as the process is idle.
 */
export function collectGarbageWhenIdle(isIdle: () => boolean, clock: Pick<Clock, 'after'>, heap = heapOfV8()): Cancel {
  // Not at once: it would delay the first requests, and a process that lives for seconds never needs it.
  let collectedBytes = 0;
  let idleChecks = 0;
  let cancel: Cancel = () => {};
  const schedule = (): void => {
    cancel = clock.after(CHECK_EVERY_MS, () => {
      idleChecks = isIdle() ? idleChecks + 1 : 0;
      // The garbage of the start goes early: there is no compiled code to lose yet.
      const isResting = idleChecks >= (collectedBytes === 0 ? 1 : IDLE_CHECKS);
      if (isResting && heap.bytes() > collectedBytes + GROWTH_BYTES) {
        heap.collect();
        collectedBytes = heap.bytes();
      }
      schedule();
    });
  };
  schedule();
  return () => cancel();
}

/** The heap of this process, as far as it matters here. */
interface Heap {
  bytes(): number;
  /** Collects all garbage. */
  collect(): void;
}

function heapOfV8(): Heap {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: object) => void;
  return {
    bytes: () => process.memoryUsage().heapTotal,
    collect: () => collect({ type: 'major', execution: 'sync', flavor: 'last-resort' }),
  };
}
