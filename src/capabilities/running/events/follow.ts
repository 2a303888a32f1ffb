import { isTerminalEvent } from '../../../protocol/running/events.ts';
import { isTerminalStatus } from '../../../protocol/running/runs.ts';
import { throughOutage } from '../../../runtime/outage.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { RunRow, StoredEvent } from '../../../store/log.ts';
import type { Cancel } from '../../../system/clock.ts';

/** Events that are read at once, unless the reader says otherwise: what one that stops reading costs in memory. */
const PAGE = 50;
/** A page that grows has at most so many events, and about so many characters. */
const GROWN_PAGE = 1_000;
const GROWN_CHARACTERS = 262_144;
/** Events that may wait in memory for a slow reader; beyond that, the reader gets them from the log. */
const BACKLOG_MAX = 50;
/** How often a follower reads the log of a store that several hosts share: the hint of another host can be lost. */
const POLL_EVERY_MS = 1_000;

/** From where and for how long to follow a log. */
interface FollowOptions {
  /** Sequence of the last event that the reader has. */
  readonly after: number;
  readonly signal: AbortSignal;
  /** How long to wait for a new event; forever without it. */
  readonly waitMs?: number;
  /** Events that are read from the log at once. */
  readonly page?: number;
  /** Read more events at once where they are short: a long log takes fewer queries, and no more memory. */
  readonly growsPage?: boolean;
}

/**
 * The events of a run after some sequence, in order, each once, in batches: first those that the log has, then those
 * that are appended. Ends with the run, when the signal aborts, or when the time is up.
 *
 * F1. Listening starts before the log is read, so no event is missed in between.
 * F2. Only the next sequence is ever yielded; if a gap is possible, the log is read.
 */
export async function* follow(runtime: Runtime, row: RunRow, options: FollowOptions): AsyncGenerator<StoredEvent[]> {
  const follower = new Follower(runtime, row, options);
  try {
    yield* follower.batches();
  } finally {
    follower.close();
  }
}

class Follower {
  readonly #runtime: Runtime;
  readonly #row: RunRow;
  readonly #options: FollowOptions;
  readonly #giveUpAt: number;
  readonly #stopListening: Cancel;
  /** Sequence of the last event that was yielded. */
  #position: number;
  /** Events that were appended on this host and not yielded yet. */
  #live: StoredEvent[] = [];
  /** Whether the log may have events that `#live` lacks. */
  #isBehind = true;
  /** Events to read at once. */
  #page: number;
  /** Ends the current wait. */
  #wake: () => void = () => {};

  constructor(runtime: Runtime, row: RunRow, options: FollowOptions) {
    this.#runtime = runtime;
    this.#row = row;
    this.#options = options;
    const { after, signal, waitMs } = options;
    this.#position = after;
    this.#page = options.page ?? PAGE;
    this.#giveUpAt = waitMs === undefined ? Number.POSITIVE_INFINITY : runtime.clock.now() + waitMs;
    this.#stopListening = runtime.hub.subscribe(row.run_id, (events) => this.#onAppend(events));
    signal.addEventListener('abort', this.#onAbort);
  }

  close(): void {
    this.#stopListening();
    this.#options.signal.removeEventListener('abort', this.#onAbort);
  }

  async *batches(): AsyncGenerator<StoredEvent[]> {
    const { signal, after } = this.#options;
    let mayHaveEnded = true;
    while (!signal.aborted) {
      const batch = this.#isBehind ? ((await this.#patiently(() => this.#readLog())) ?? []) : this.#takeLive();
      if (batch.length > 0) {
        this.#position = batch.at(-1)!.sequence;
        yield batch;
        if (batch.some(({ type }) => isTerminalEvent(type))) return;
      } else if (!this.#isBehind) {
        if (mayHaveEnded && (await this.#patiently(() => this.#hasEnded()))) return;
        // A reader that starts beyond the end of the log gets no terminal event, so the run itself is checked each time.
        mayHaveEnded = this.#position > this.#row.sequence && this.#position === after;
        if (!(await this.#waitForNew())) return;
      }
    }
  }

  readonly #onAbort = (): void => this.#wake();

  /** A stream outlives an outage of the store; one who waits for an answer until some time gets it. */
  #patiently<T>(read: () => Promise<T>): Promise<T | undefined> {
    const { signal, waitMs } = this.#options;
    return waitMs === undefined ? throughOutage(this.#runtime.clock, signal, read) : read();
  }

  #onAppend(events: readonly StoredEvent[] | undefined): void {
    if (!events || this.#live.length + events.length > BACKLOG_MAX) this.#fallBehind();
    else if (!this.#isBehind) this.#live.push(...events);
    this.#wake();
  }

  #fallBehind(): void {
    this.#isBehind = true;
    this.#live = [];
  }

  /** The next page of the log. Events that are appended meanwhile are in it or follow it. */
  async #readLog(): Promise<StoredEvent[]> {
    this.#isBehind = false;
    const page = this.#page;
    const events = await this.#runtime.reader.events(this.#row, this.#position, page);
    if (events.length === page) this.#isBehind = true;
    if (this.#options.growsPage) this.#page = nextPage(events);
    return events;
  }

  #takeLive(): StoredEvent[] {
    const fresh = this.#live.filter(({ sequence }) => sequence > this.#position);
    this.#live = [];
    const hasNoGap = fresh.every(({ sequence }, index) => sequence === this.#position + 1 + index);
    if (hasNoGap) return fresh;
    this.#isBehind = true;
    return [];
  }

  async #hasEnded(): Promise<boolean> {
    const { tenant, run_id } = this.#row;
    const now = await this.#runtime.reader.row({ tenant }, run_id);
    return !now || (isTerminalStatus(now.status) && now.sequence <= this.#position);
  }

  /** Waits until there may be new events; false if the time is up. */
  #waitForNew(): Promise<boolean> {
    const { clock, store } = this.#runtime;
    if (this.#live.length > 0 || this.#isBehind || this.#options.signal.aborted) return Promise.resolve(true);
    const pollAt = store.isShared ? clock.now() + POLL_EVERY_MS : Number.POSITIVE_INFINITY;
    const wakeAt = Math.min(pollAt, this.#giveUpAt);
    return new Promise((resolve) => {
      let cancel: Cancel = () => {};
      const settle = (isNew: boolean): void => {
        cancel();
        this.#wake = () => {};
        resolve(isNew);
      };
      this.#wake = () => settle(true);
      if (!Number.isFinite(wakeAt)) return;
      cancel = clock.after(Math.max(0, wakeAt - clock.now()), () => {
        this.#isBehind = true;
        settle(wakeAt !== this.#giveUpAt);
      });
    });
  }
}

/** How many events like these fit into a page. */
function nextPage(events: readonly StoredEvent[]): number {
  const characters = events.reduce((sum, { body }) => sum + body.length, 1);
  return Math.min(GROWN_PAGE, Math.max(PAGE, Math.floor((GROWN_CHARACTERS * events.length) / characters)));
}
