import { findSequences } from '../store/sequences.ts';
import { type Store, StoreFailure } from '../store/store.ts';
import type { Cancel, Clock } from '../system/clock.ts';
import type { Log } from '../system/log.ts';

/** How often the runs are looked at: the hint of another host can be lost. */
const LOOK_EVERY_MS = 1_000;
const RUNS_AT_ONCE = 512;

/** Hears how far a run is; undefined if it is gone. */
type Look = (sequence: number | undefined) => void;

/**
 * The runs that somebody on this host follows, on a store that several hosts share. All of them are looked at together
 * once a second, however many follow them.
 */
export class FollowedRuns {
  readonly #store: Pick<Store, 'read' | 'isShared'>;
  readonly #clock: Clock;
  readonly #log: Pick<Log, 'warn'>;
  readonly #looks = new Map<string, Set<Look>>();
  #cancel: Cancel | undefined;

  constructor(store: Pick<Store, 'read' | 'isShared'>, clock: Clock, log: Pick<Log, 'warn'>) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
  }

  /** Tells every second how far a run is, until it is cancelled. A host that is alone hears of everything anyway. */
  follow(runId: string, look: Look): Cancel {
    if (!this.#store.isShared) return () => {};
    const looks = this.#looks.get(runId) ?? new Set();
    this.#looks.set(runId, looks.add(look));
    this.#cancel ??= this.#clock.after(LOOK_EVERY_MS, () => void this.#lookAtAll());
    return () => this.#leave(runId, look);
  }

  #leave(runId: string, look: Look): void {
    const looks = this.#looks.get(runId);
    looks?.delete(look);
    if (looks?.size === 0) this.#looks.delete(runId);
    if (this.#looks.size > 0) return;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  async #lookAtAll(): Promise<void> {
    const runIds = [...this.#looks.keys()];
    for (let index = 0; index < runIds.length; index += RUNS_AT_ONCE) {
      await this.#lookAt(runIds.slice(index, index + RUNS_AT_ONCE));
    }
    this.#cancel = this.#looks.size > 0 ? this.#clock.after(LOOK_EVERY_MS, () => void this.#lookAtAll()) : undefined;
  }

  /** A store that is away is asked again the next time. */
  async #lookAt(runIds: readonly string[]): Promise<void> {
    try {
      const rows = await this.#store.read<{ run_id: string; sequence: number }>(findSequences(runIds));
      const sequences = new Map(rows.map(({ run_id, sequence }) => [run_id, sequence]));
      for (const runId of runIds) for (const look of [...(this.#looks.get(runId) ?? [])]) look(sequences.get(runId));
    } catch (error) {
      if (!(error instanceof StoreFailure)) this.#log.warn({ err: error }, 'followed runs could not be looked at');
    }
  }
}
