import type { Lease } from '../store/queue.ts';
import type { Unit } from '../store/sql.ts';
import { sleep } from '../system/clock.ts';
import { commitOrThrow } from './change.ts';
import type { Runtime } from './runtime.ts';

/** First and longest pause before a work item is handed back again to a store that failed. */
const PAUSE_MS = 100;
const PAUSE_MAX_MS = 2_000;

/**
 * Returns an item to the queue. A store that fails now is asked until it answers: an item that stays owned with nobody at
 * work on it would wait until the next start. Only a stop ends this, because the next start returns the item too.
 */
export async function handBack(runtime: Runtime, lease: Lease, unit: Unit, stop: AbortSignal): Promise<void> {
  for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)) {
    try {
      await commitOrThrow(runtime.store, unit);
      return;
    } catch (error) {
      const fields = { workId: lease.workId, err: error };
      runtime.log.warn(fields, 'a work item could not be handed back to the queue; trying again');
    }
    if (stop.aborted) return;
    await sleep(runtime.clock, pauseMs, stop);
  }
}
