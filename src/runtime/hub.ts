import type { StoredEvent } from '../store/log.ts';
import type { Append } from './reaction.ts';

/** Called after an append to one run, with the events if this host committed them; otherwise they must be read. */
type RunListener = (events: readonly StoredEvent[] | undefined) => void;

/** Called when a work item is due: at `dueAt`, or now if that is omitted. */
type WorkListener = (workId: string, dueAt?: number) => void;

/** Called after every append that this host committed, to any run. */
export type AppendListener = (append: Append) => void;

/** A server-sent event about a run that is not part of its log: only current subscribers receive it. */
export interface Notice {
  readonly event: string;
  readonly data: string;
}

/** Called with every notice about one run. */
type NoticeListener = (notice: Notice) => void;

/** Called with the subject of another host's hint: the part after the colon. */
export type HintListener = (subject: string) => void;

/** Those who listen as long as the host runs: they are named when it is built. */
export interface HubListeners {
  readonly onAppend: readonly AppendListener[];
  /** By the word before the colon of the hint. */
  readonly onHint: ReadonlyMap<string, HintListener>;
}

const NOBODY: HubListeners = { onAppend: [], onHint: new Map() };

/**
 * The notifications inside one host, about runs and work items. They are hints and may be lost: a listener reads the
 * store, and a notification only makes it do so earlier.
 */
export class Hub {
  readonly #runListeners = new Map<string, Set<RunListener>>();
  readonly #noticeListeners = new Map<string, Set<NoticeListener>>();
  readonly #workListeners = new Set<WorkListener>();
  readonly #listeners: HubListeners;

  /** The listeners are asked for when there is something to tell: by then the host is built. */
  constructor(listeners: HubListeners = NOBODY) {
    this.#listeners = listeners;
  }

  /** Subscribes to the appends of one run; returns the function that unsubscribes. */
  subscribe(runId: string, listener: RunListener): () => void {
    return addListener(this.#runListeners, runId, listener);
  }

  /** Notifies the subscribers of a run that its log has grown. */
  publish(runId: string, events?: readonly StoredEvent[]): void {
    for (const listener of this.#runListeners.get(runId) ?? []) listener(events);
  }

  /** Subscribes to the notices about one run; returns the function that unsubscribes. */
  onNotice(runId: string, listener: NoticeListener): () => void {
    return addListener(this.#noticeListeners, runId, listener);
  }

  /** Sends a notice to the current subscribers of a run. */
  publishNotice(runId: string, notice: Notice): void {
    for (const listener of this.#noticeListeners.get(runId) ?? []) listener(notice);
  }

  /** Whether a notice about this run would reach anybody; without subscribers there is no need to build one. */
  hasNoticeListeners(runId: string): boolean {
    return this.#noticeListeners.has(runId);
  }

  /** Passes on a hint of another host, which is written `topic:subject`. */
  receiveHint(hint: string): void {
    const colon = hint.indexOf(':');
    const topic = hint.slice(0, colon);
    const subject = hint.slice(colon + 1);
    if (topic === 'run') this.publish(subject);
    else if (topic === 'work') this.wakeWorkers(subject);
    else this.#listeners.onHint.get(topic)?.(subject);
  }

  /** Notifies the append listeners after the commit. */
  publishAppend(append: Append): void {
    for (const listener of this.#listeners.onAppend) listener(append);
  }

  /** Subscribes to due work items; returns the function that unsubscribes. */
  onWork(listener: WorkListener): () => void {
    this.#workListeners.add(listener);
    return () => this.#workListeners.delete(listener);
  }

  /** Notifies workers that a work item is due, now or at `dueAt`. */
  wakeWorkers(workId: string, dueAt?: number): void {
    for (const listener of this.#workListeners) listener(workId, dueAt);
  }

  /** Number of runs that have subscribers. */
  get subscribedRuns(): number {
    return this.#runListeners.size;
  }
}

/** Adds a listener and returns the function that removes it. Runs without listeners leave no entry behind. */
function addListener<L>(byRun: Map<string, Set<L>>, runId: string, listener: L): () => void {
  const listeners = byRun.get(runId) ?? new Set();
  byRun.set(runId, listeners.add(listener));
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0 && byRun.get(runId) === listeners) byRun.delete(runId);
  };
}
