import type { StoredEvent } from '../store/log.ts';
import type { Append } from './append.ts';

/** Called with events that were just committed here, or without when they were committed by another host. */
export type RunListener = (events: readonly StoredEvent[] | undefined) => void;

/** Called with work that wants attention, now or at some time. */
export type WorkListener = (workId: string, dueAt?: number) => void;

/** Called with what was just committed by this host, of any run. */
export type AppendListener = (append: Append) => void;

/**
 * Tells whoever follows a run that its log has grown, and whoever works that work wants attention. Telling shortens a
 * wait; what is true is in the store.
 */
export class Hub {
  readonly #listeners = new Map<string, Set<RunListener>>();
  readonly #appendListeners: AppendListener[] = [];
  readonly #workers = new Set<WorkListener>();

  follow(runId: string, listener: RunListener): () => void {
    const listeners = this.#listeners.get(runId) ?? new Set();
    this.#listeners.set(runId, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(runId) === listeners) this.#listeners.delete(runId);
    };
  }

  tell(runId: string, events?: readonly StoredEvent[]): void {
    for (const listener of this.#listeners.get(runId) ?? []) listener(events);
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
