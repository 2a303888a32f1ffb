import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Cancel, Clock } from './clock.ts';

const CHECK_EVERY_MS = 3_000;
/**
 * How long a process that has worked must rest. A full collection drops compiled code too: after one, calls took up to
 * twice the processor time for some seconds, and loads that come every minute should not pay that each time.
 */
const REST_MS = 5 * 60_000;
const CHECKS_OF_REST = REST_MS / CHECK_EVERY_MS;
/**
 * Processor time between two checks above which the process was busy. What it does at the moment of a check says little:
 * a busy process has pauses, and one that rests has timers.
 */
const BUSY_MS = 0.1 * CHECK_EVERY_MS;
/** Heap growth since the last collection below which another one is not worthwhile. */
const GROWTH_BYTES = 32 * 1_024 * 1_024;

/**
 * Runs a full garbage collection when the process has rested, has nothing in hand and its heap has grown. V8's own
 * collections at rest are switched off in `bin/capstan.js`: they drop compiled code early, and still leave most of the
 * memory of a busy hour.
 */
export function collectGarbageWhenIdle(
  isIdle: () => boolean,
  clock: Pick<Clock, 'after' | 'processorMs'>,
  heap = heapOfV8(),
): Cancel {
  // Not at once: it would delay the first requests, and a process that lives for seconds never needs it.
  let collectedBytes = 0;
  let checksOfRest = 0;
  let hasWorked = false;
  let usedMs = clock.processorMs?.() ?? 0;
  const wasBusy = (): boolean => {
    const before = usedMs;
    usedMs = clock.processorMs?.() ?? 0;
    return usedMs - before > BUSY_MS;
  };
  let cancel: Cancel = () => {};
  const schedule = (): void => {
    cancel = clock.after(CHECK_EVERY_MS, () => {
      const [isBusy, isIdleNow] = [wasBusy(), isIdle()];
      checksOfRest = isBusy ? 0 : checksOfRest + 1;
      hasWorked ||= isBusy || !isIdleNow || collectedBytes > 0;
      // Before the first work there is no compiled code to lose: the garbage of the start goes early.
      const isResting = checksOfRest >= (hasWorked ? CHECKS_OF_REST : 1);
      if (isResting && isIdleNow && heap.bytes() > collectedBytes + GROWTH_BYTES) {
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
