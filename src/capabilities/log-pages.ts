import type { Runtime } from '../runtime/runtime.ts';
import type { RunRow, StoredEvent } from '../store/log.ts';
import { turnOf } from '../system/breaks.ts';

/** Events in a page. Pages of every log begin at the same sequences, so two logs can be read side by side. */
export const LOG_PAGE = 200;

/**
 * The log of a run up to the sequence of the row, page by page. Yields to other work between pages, so that a long log
 * does not block other requests.
 */
export async function* logPages({ reader, clock }: Runtime, row: RunRow): AsyncGenerator<StoredEvent[]> {
  for (let last = -1; last < row.sequence; ) {
    const events = await reader.events(row, last, Math.min(LOG_PAGE, row.sequence - last));
    if (events.length === 0) throw new Error(`the log of ${row.run_id} is gone`);
    last = events.at(-1)!.sequence;
    yield events;
    await turnOf(clock);
  }
}
