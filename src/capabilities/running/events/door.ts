import type { StoredEvent, Visibility } from '../../../store/log.ts';
import { door } from '../../capability.ts';

export { waitUntilSettled } from './settled.ts';

/** Reading the event logs of runs. */
export interface Events {
  /**
   * Events after a sequence. If there are none, waits for some until the time is up or the signal aborts. Undefined if
   * the run is not there, or not for these eyes.
   */
  poll(
    visibility: Visibility,
    runId: string,
    after: number,
    waiting: { readonly waitMs: number; readonly signal: AbortSignal },
  ): Promise<PolledEvents | undefined>;
}

/** The door to events. */
export const Events = door<Events>()('events');

/** What a poll found. */
export interface PolledEvents {
  /** The run as it is after the poll. */
  readonly status: string;
  /** The sequence of its last event. */
  readonly sequence: number;
  readonly events: readonly StoredEvent[];
}
