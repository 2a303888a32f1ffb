import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Cancel, Clock } from './clock.ts';

const CHECK_EVERY_MS = 3_000;
/** Heap growth since the last collection below which another one is not worthwhile. */
const GROWTH_BYTES = 32 * 1_024 * 1_024;

/**
 * Runs a full garbage collection when the process is idle and its heap has grown. V8 alone would keep the memory of
 * start-up or of a busy hour for as long as the process is idle.
 */
export function collectGarbageWhenIdle(isIdle: () => boolean, clock: Clock): Cancel {
  const collect = collector();
  // Not at once: it would delay the first requests, and a process that lives for seconds never needs it.
  let collectedBytes = 0;
  let cancel: Cancel = () => {};
  const schedule = (): void => {
    cancel = clock.after(CHECK_EVERY_MS, () => {
      if (isIdle() && heapBytes() > collectedBytes + GROWTH_BYTES) collectedBytes = collect();
      schedule();
    });
  };
  schedule();
  return () => cancel();
}

/** Returns a function that collects all garbage and returns the heap size afterwards. */
function collector(): () => number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: object) => void;
  return () => {
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    return heapBytes();
  };
}

function heapBytes(): number {
  return process.memoryUsage().heapTotal;
}
