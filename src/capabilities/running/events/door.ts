import type { RunRow, StoredEvent } from '../../../store/log.ts';
import { door } from '../../capability.ts';

export { waitUntilSettled } from './settled.ts';

/** Reading the event logs of runs. */
export interface Events {
  /** Events after a sequence. If there are none, waits for some until the time is up or the signal aborts. */
  poll(row: RunRow, after: number, waitMs: number, signal: AbortSignal): Promise<PolledEvents>;
}

/** The door to events. */
export const Events = door<Events>()('events');

/** What a poll found. */
export interface PolledEvents {
  /** The run as it is after the poll. */
  readonly row: RunRow;
  readonly events: readonly StoredEvent[];
  /** Whether the run has ended and no event follows these. */
  readonly isComplete: boolean;
}
