import { StoreFailure } from '../store/store.ts';
import { type Clock, sleep } from '../system/clock.ts';

/** How long a store that failed is left alone; each attempt already waits for it some time. */
const PAUSE_MS = 500;

/**
 * Reads for a stream, which stays open while the store is away and goes on afterwards. Returns undefined once the signal
 * is aborted. Whoever waits for one answer is told of the outage instead.
 */
export async function throughOutage<T>(
  clock: Clock,
  signal: AbortSignal,
  read: () => Promise<T>,
): Promise<T | undefined> {
  while (!signal.aborted) {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof StoreFailure)) throw error;
    }
    await sleep(clock, PAUSE_MS, signal);
  }
  return undefined;
}
