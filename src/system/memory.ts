import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Cancel, Clock } from './clock.ts';

const LOOK_EVERY_MS = 3_000;
/** Less than this is not worth a collection. */
const GROWTH_BYTES = 32 * 1_024 * 1_024;

/**
 * Gives memory back when nothing is going on. Left alone, V8 keeps what starting up or a busy hour took for as long as
 * the process is idle, and operators pay for it.
 */
export function collectWhenIdle(isIdle: () => boolean, clock: Clock): Cancel {
  const collect = collector();
  let settledBytes = collect();
  let cancel: Cancel = () => {};
  const look = (): void => {
    cancel = clock.after(LOOK_EVERY_MS, () => {
      if (isIdle() && heapBytes() > settledBytes + GROWTH_BYTES) settledBytes = collect();
      look();
    });
  };
  look();
  return () => cancel();
}

/** Collects everything that can be collected and says how large the heap is then. */
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
