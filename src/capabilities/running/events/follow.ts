import { isTerminalEvent } from '../../../protocol/running/events.ts';
import { isTerminalStatus } from '../../../protocol/running/runs.ts';
import type { Notice } from '../../../runtime/hub.ts';
import { throughOutage } from '../../../runtime/outage.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { RunRow, StoredEvent, Visibility } from '../../../store/log.ts';
import type { Cancel } from '../../../system/clock.ts';
import { type LogPage, LogPages } from './log-pages.ts';
import type { PolledEvents } from './polling.ts';

/** Events that are read at once at most, where they are short. */
const PAGE = 1_000;
/** Events that may wait in memory for a slow reader; beyond that, the reader gets them from the log. */
const BACKLOG_MAX = 50;

/** From where and for how long to follow a log. */
interface FollowOptions {
  /** Sequence of the last event that the reader has. */
  readonly after: number;
  readonly signal: AbortSignal;
  /** How long to wait for a new event; forever without it. */
  readonly waitMs?: number;
  /** Events that are read from the log at once, however long they are. */
  readonly page?: number;
  /** Whether the reader wants to hear of notices: it gets an empty batch when there are some. */
  readonly notices?: boolean;
  /** Waits for the reader's turn, to read the log or to take what was appended until then. */
  readonly turn?: (isToRead: boolean) => Promise<void>;
}

/** The events of a run in batches, and the notices about it that came meanwhile. */
export interface Batches extends AsyncIterableIterator<StoredEvent[], undefined> {
  /** Takes the notices that came since the last time. */
  takeNotices(): readonly Notice[];
  /** Tells once, in the reader's turn, that there may be something to take or that the end has come. */
  whenMore(tell: () => void): void;
  /** A batch that `next` would give at once, empty where there are only notices; undefined if `next` has to be asked. */
  takeNow(): StoredEvent[] | undefined;
  /** Ends the batches, also the one that somebody waits for. */
  close(): void;
}

/**
 * The events of a run after some sequence, in order, each once, in batches: first those that the log has, then those
 * that are appended. Ends with the run, when the signal aborts, or when the time is up.
 *
 * F1. Listening starts before the log is read, so no event is missed in between.
 * F2. Only the next sequence is ever given; if a gap is possible, the log is read.
 */
export function follow(runtime: Runtime, { tenant, run_id }: RunRow, options: FollowOptions): Batches {
  return new Follower(runtime, { tenant, runId: run_id }, options);
}

/** The first batch that `follow` would give, and the run after it; undefined if the caller cannot see the run. */
export async function firstBatch(
  runtime: Runtime,
  run: FollowedRun,
  options: FollowOptions,
): Promise<PolledEvents | undefined> {
  const follower = new Follower(runtime, run, options);
  try {
    const { value: events = [] } = await follower.next();
    const standing = await follower.standing();
    return standing && { status: standing.status, sequence: standing.sequence, events };
  } finally {
    follower.close();
  }
}

/** A run, as somebody sees it. */
interface FollowedRun extends Visibility {
  readonly runId: string;
}

/** How far a run is. */
interface Standing {
  readonly status: string;
  readonly sequence: number;
}

const NOBODY_WAITS = (): void => {};
const DONE = { done: true, value: undefined } as const;
/** Notices that may wait for a slow reader. Further ones are dropped; they can still be listed. */
const NOTICES_MAX = 1_000;

/** No generator, because thousands of these wait at the same time: two generators and what they keep are a kilobyte. */
class Follower implements Batches {
  readonly #runtime: Runtime;
  readonly #run: FollowedRun;
  readonly #options: FollowOptions;
  readonly #giveUpAt: number;
  readonly #stopListening: Cancel;
  readonly #stopNotices: Cancel | undefined;
  readonly #stopLooking: Cancel;
  /** The log, while it is read. */
  #pages: LogPages | undefined;
  /** Sequence of the last event that was given. */
  #position: number;
  /** Events that were appended on this host and not given yet. */
  #live: StoredEvent[] = [];
  readonly #notices: Notice[] = [];
  /** Whether the log may have events that `#live` lacks. */
  #isBehind = true;
  /** The run after the events that were given; undefined if they do not tell, or if nobody may see it. */
  #standing: Standing | undefined;
  #isClosed = false;
  /** Ends the current wait. */
  #wake: () => void = NOBODY_WAITS;

  constructor(runtime: Runtime, run: FollowedRun, options: FollowOptions) {
    this.#runtime = runtime;
    this.#run = run;
    this.#options = options;
    const { after, signal, waitMs, notices } = options;
    this.#position = after;
    this.#giveUpAt = waitMs === undefined ? Number.POSITIVE_INFINITY : runtime.clock.now() + waitMs;
    this.#stopListening = runtime.hub.subscribe(run.runId, (events) => this.#onAppend(events));
    this.#stopNotices = notices ? runtime.hub.onNotice(run.runId, (notice) => this.#onNotice(notice)) : undefined;
    this.#stopLooking = runtime.followedRuns.follow(run.runId, (sequence) => this.#onLook(sequence));
    signal.addEventListener('abort', this.#onAbort);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  close(): void {
    this.#isClosed = true;
    this.#stopListening();
    this.#stopLooking();
    this.#stopNotices?.();
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#wake();
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.close();
    return DONE;
  }

  takeNotices(): readonly Notice[] {
    return this.#notices.splice(0);
  }

  /** The run after what was given; undefined if nobody may see it. */
  async standing(): Promise<Standing | undefined> {
    return this.#standing ?? this.#runtime.reader.row(this.#run, this.#run.runId);
  }

  async next(): Promise<IteratorResult<StoredEvent[], undefined>> {
    const { signal, turn } = this.#options;
    while (!signal.aborted && !this.#isClosed) {
      if (turn && (this.#isBehind || this.#live.length > 0)) await turn(this.#isBehind);
      const wasBehind = this.#isBehind;
      const batch = wasBehind ? ((await this.#patiently(() => this.#readLog())) ?? []) : this.#takeLive();
      if (batch.length > 0) return { done: false, value: this.#give(batch) };
      if (this.#notices.length > 0) return { done: false, value: [] };
      if (this.#isBehind) continue;
      if ((wasBehind && this.#hasEnded()) || !(await this.#waitForNew())) break;
    }
    this.close();
    return DONE;
  }

  takeNow(): StoredEvent[] | undefined {
    if (this.#options.signal.aborted || this.#isClosed || this.#isBehind) return undefined;
    const batch = this.#takeLive();
    if (batch.length > 0) return this.#give(batch);
    return this.#notices.length > 0 ? batch : undefined;
  }

  whenMore(tell: () => void): void {
    if (this.#isAwaited) this.#whenNew(() => this.#tellInTurn(tell));
    else this.#tellInTurn(tell);
  }

  /** Whoever is behind asks `next`, which waits for the turn to read. */
  #tellInTurn(tell: () => void): void {
    const { turn } = this.#options;
    if (turn && !this.#isBehind) void turn(false).then(tell);
    else tell();
  }

  /** Nothing follows the end of a run. */
  #give(batch: StoredEvent[]): StoredEvent[] {
    this.#position = batch.at(-1)!.sequence;
    if (batch.some(({ type }) => isTerminalEvent(type))) this.close();
    return batch;
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

  /** The log is read if it has more than was given, if the run is gone, or if the reader waits beyond its end. */
  #onLook(sequence: number | undefined): void {
    if (sequence !== undefined && sequence <= this.#position && !this.#isBeyondTheEnd) return;
    this.#fallBehind();
    this.#wake();
  }

  #onNotice(notice: Notice): void {
    if (this.#notices.length < NOTICES_MAX) this.#notices.push(notice);
    this.#wake();
  }

  #fallBehind(): void {
    this.#isBehind = true;
    this.#live = [];
  }

  /** The next page of the log. Events that are appended meanwhile are in it or follow it. */
  async #readLog(): Promise<StoredEvent[]> {
    this.#isBehind = false;
    const { events, isFull } = await this.#page();
    if (isFull) this.#isBehind = true;
    else this.#pages = undefined;
    return events;
  }

  async #page(): Promise<LogPage> {
    const { page } = this.#options;
    if (page === undefined) {
      this.#pages ??= new LogPages((sequence, limit) => this.#read(sequence, limit), PAGE);
      return this.#pages.after(this.#position);
    }
    const events = await this.#read(this.#position, page);
    return { events, isFull: events.length === page };
  }

  /** Events of the log after one; the same statement tells how far the run is. */
  async #read(after: number, limit: number): Promise<StoredEvent[]> {
    const found = await this.#runtime.reader.runWithEvents(this.#run, this.#run.runId, after, limit);
    this.#standing = found && { status: found.status, sequence: found.sequence };
    return found?.events ?? [];
  }

  #takeLive(): StoredEvent[] {
    const fresh = this.#live.filter(({ sequence }) => sequence > this.#position);
    const wasAppended = this.#live.length > 0;
    this.#live = [];
    const hasNoGap = fresh.every(({ sequence }, index) => sequence === this.#position + 1 + index);
    // A reader that starts beyond the end of the log gets no terminal event, so the run itself is looked at each time.
    if (!hasNoGap || (wasAppended && this.#isBeyondTheEnd)) this.#isBehind = true;
    if (!hasNoGap || fresh.length === 0) return [];
    this.#standing = standingAfter(fresh.at(-1)!);
    return fresh;
  }

  get #isBeyondTheEnd(): boolean {
    return this.#standing !== undefined && this.#position > this.#standing.sequence;
  }

  /** By what the log that was just read says; a run that is gone has ended too. */
  #hasEnded(): boolean {
    const { status, sequence } = this.#standing ?? {};
    return status === undefined || (isTerminalStatus(status) && sequence! <= this.#position);
  }

  /** Whether there is nothing to give until something happens. */
  get #isAwaited(): boolean {
    const isQuiet = this.#live.length === 0 && this.#notices.length === 0 && !this.#isBehind;
    return isQuiet && !this.#isClosed && !this.#options.signal.aborted;
  }

  /** Waits until there may be new events; false if the time is up. */
  #waitForNew(): Promise<boolean> {
    if (!this.#isAwaited) return Promise.resolve(true);
    return new Promise((resolve) => this.#whenNew(resolve));
  }

  /** Tells once that there may be new events; with false if the time is up. */
  #whenNew(tell: (isNew: boolean) => void): void {
    const { clock } = this.#runtime;
    const settle = (isNew: boolean): void => {
      this.#wake = NOBODY_WAITS;
      tell(isNew);
    };
    if (!Number.isFinite(this.#giveUpAt)) {
      this.#wake = () => settle(true);
      return;
    }
    const cancel = clock.after(Math.max(0, this.#giveUpAt - clock.now()), () => {
      this.#isBehind = true;
      settle(false);
    });
    this.#wake = () => {
      cancel();
      settle(true);
    };
  }
}

/** The run after its last event, where that alone tells: the status that an end leads to is part of its name. */
function standingAfter({ type, sequence }: StoredEvent): Standing | undefined {
  return isTerminalEvent(type) ? { status: type.slice('run.'.length), sequence } : undefined;
}
