import { useEffect, useState, useSyncExternalStore } from 'react';
import { type RunEvent, UnreachableError } from '../../src/client/index.ts';
import { client } from './client.ts';

/** Events come faster than screens are drawn, so they are shown in batches. */
const BATCH_MS = 60;
/**
 * What is shown is made from all events, so a long log that is still being read is shown less often: each time costs
 * more, and there is more to come.
 */
const EVENTS_PER_MS = 100;
/** Events that follow each other so closely are read from the history, not as they happen. */
const HISTORY_MS = 50;

/** What is known of a run's log. `events` is another array each time it has grown. */
interface LogState {
  readonly events: readonly RunEvent[];
  readonly isComplete: boolean;
  readonly error?: unknown;
}

/** Follows the log of one run until the run has ended. */
class RunLog {
  #state: LogState = { events: [], isComplete: false };
  #fresh: RunEvent[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #flushedAt = Date.now();
  readonly #listeners = new Set<() => void>();

  readonly state = (): LogState => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  async follow(runId: string, signal: AbortSignal): Promise<void> {
    try {
      for await (const event of client.followRun(runId, { streamMode: 'debug', after: this.#last(), signal })) {
        this.#fresh.push(event);
        this.#timer ??= setTimeout(() => this.#flush({}), this.#batchMs());
      }
      this.#flush({ isComplete: true });
    } catch (error) {
      if (signal.aborted) return;
      // The host was away for longer than the client waits; the page says so, and goes on when it is back.
      if (error instanceof UnreachableError) return this.follow(runId, signal);
      this.#flush({ error });
    }
  }

  #last(): number | undefined {
    return (this.#fresh.at(-1) ?? this.#state.events.at(-1))?.sequence;
  }

  /** A log that grows slowly is shown as it grows, however long it is. */
  #batchMs(): number {
    const isHistory = Date.now() - this.#flushedAt < HISTORY_MS;
    return isHistory ? Math.max(BATCH_MS, this.#state.events.length / EVENTS_PER_MS) : BATCH_MS;
  }

  #flush(change: Partial<LogState>): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#flushedAt = Date.now();
    this.#state = { ...this.#state, ...change, events: [...this.#state.events, ...this.#fresh] };
    this.#fresh = [];
    for (const listener of this.#listeners) listener();
  }
}

/** The log of a run, as it grows. */
export function useRunLog(runId: string): LogState {
  const [log, setLog] = useState(() => new RunLog());
  useEffect(() => {
    const fresh = new RunLog();
    const reading = new AbortController();
    setLog(fresh);
    void fresh.follow(runId, reading.signal);
    return () => reading.abort();
  }, [runId]);
  return useSyncExternalStore(log.subscribe, log.state);
}
