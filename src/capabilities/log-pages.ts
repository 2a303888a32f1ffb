import type { Runtime } from '../runtime/runtime.ts';
import type { RunRow, StoredEvent } from '../store/log.ts';

/** Events at a time; the pages of all logs begin at the same sequences. */
export const LOG_PAGE = 200;

/**
 * The log of a run as far as it had come when its row was read, however much of it there is: a page at a time, and
 * between two pages others have their turn.
 */
export async function* logPages({ reader, clock }: Runtime, row: RunRow): AsyncGenerator<StoredEvent[]> {
  for (let last = -1; last < row.sequence; ) {
    const events = await reader.events(row, last, Math.min(LOG_PAGE, row.sequence - last));
    if (events.length === 0) throw new Error(`the log of ${row.run_id} is gone`);
    last = events.at(-1)!.sequence;
    yield events;
    await new Promise<void>((resolve) => clock.soon(resolve));
  }
}
