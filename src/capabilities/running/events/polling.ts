import type { StoredEvent, Visibility } from '../../../store/log.ts';

/** Waiting for the events of a run. */
export interface Polling {
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

/** What a poll found. */
export interface PolledEvents {
  /** The run as it is after the poll. */
  readonly status: string;
  /** The sequence of its last event. */
  readonly sequence: number;
  readonly events: readonly StoredEvent[];
}
