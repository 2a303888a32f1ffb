import type { StoredEvent } from '../store/log.ts';
import type { Append } from './append.ts';

/** Called with events that were just committed here, or without when they were committed by another host. */
export type RunListener = (events: readonly StoredEvent[] | undefined) => void;

/** Called with work that wants attention, now or at some time. */
export type WorkListener = (workId: string, dueAt?: number) => void;

/** Called with what was just committed by this host, of any run. */
export type AppendListener = (append: Append) => void;

/** Something said about a run that is no event of it: heard by whoever listens now, and by nobody later. */
export interface Notice {
  readonly event: string;
  readonly data: string;
}
export type NoticeListener = (notice: Notice) => void;

/** Called with what another host's hint is about. */
export type HintListener = (about: string) => void;

/**
 * Tells whoever follows a run that its log has grown, and whoever works that work wants attention. Telling shortens a
 * wait; what is true is in the store.
 */
export class Hub {
  readonly #listeners = new Map<string, Set<RunListener>>();
  readonly #noticeListeners = new Map<string, Set<NoticeListener>>();
  readonly #hintListeners = new Map<string, HintListener>();
  readonly #appendListeners: AppendListener[] = [];
  readonly #workers = new Set<WorkListener>();

  follow(runId: string, listener: RunListener): () => void {
    return join(this.#listeners, runId, listener);
  }

  tell(runId: string, events?: readonly StoredEvent[]): void {
    for (const listener of this.#listeners.get(runId) ?? []) listener(events);
  }

  /** For those who also want to hear what is said about a run. */
  onNotice(runId: string, listener: NoticeListener): () => void {
    return join(this.#noticeListeners, runId, listener);
  }

  notice(runId: string, notice: Notice): void {
    for (const listener of this.#noticeListeners.get(runId) ?? []) listener(notice);
  }

  isNoticed(runId: string): boolean {
    return this.#noticeListeners.has(runId);
  }

  /** Adds what a capability listens to. */
  connect(onAppend: readonly AppendListener[], onHint: Readonly<Record<string, HintListener>>): void {
    this.#appendListeners.push(...onAppend);
    for (const [word, listener] of Object.entries(onHint)) this.#hintListeners.set(word, listener);
  }

  /** For those whose hints begin with this word. */
  onHint(word: string, listener: HintListener): void {
    this.#hintListeners.set(word, listener);
  }

  /** A hint of another host: a word, a colon and what it is about. */
  hinted(topic: string): void {
    const colon = topic.indexOf(':');
    const about = topic.slice(colon + 1);
    const word = topic.slice(0, colon);
    if (word === 'run') this.tell(about);
    else if (word === 'work') this.callToWork(about);
    else this.#hintListeners.get(word)?.(about);
  }

  /** For those who wrote something along with an append and want to go on with it at once. */
  onAppend(listener: AppendListener): void {
    this.#appendListeners.push(listener);
  }

  appended(append: Append): void {
    for (const listener of this.#appendListeners) listener(append);
  }

  onWork(listener: WorkListener): () => void {
    this.#workers.add(listener);
    return () => this.#workers.delete(listener);
  }

  callToWork(workId: string, dueAt?: number): void {
    for (const worker of this.#workers) worker(workId, dueAt);
  }

  get followed(): number {
    return this.#listeners.size;
  }
}

/** Adds a listener; what comes back takes it away again. */
function join<L>(all: Map<string, Set<L>>, runId: string, listener: L): () => void {
  const listeners = all.get(runId) ?? new Set();
  all.set(runId, listeners.add(listener));
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0 && all.get(runId) === listeners) all.delete(runId);
  };
}
