import { type Clock, withTimeout } from '../system/clock.ts';
import { probeWrite } from './hosts.ts';
import type { Store } from './store.ts';

/** How long a write is evidence that the next one will succeed. */
const FRESH_MS = 1_000;
/** A store that has not answered by then does not take writes. */
const ANSWER_MS = 2_000;

/**
 * Tells whether the store takes writes, by the way that all others go: one that only answers queries, or that waits for
 * a lock, is of no use. However many ask, there is one attempt at a time.
 */
export class WriteProbe {
  readonly #store: Pick<Store, 'commit'>;
  readonly #clock: Clock;
  readonly #hostId: string;
  #succeededAt = Number.NEGATIVE_INFINITY;
  #attempt: Promise<void> | undefined;

  constructor(store: Pick<Store, 'commit'>, clock: Clock, hostId: string) {
    this.#store = store;
    this.#clock = clock;
    this.#hostId = hostId;
  }

  async isWritable(): Promise<boolean> {
    if (this.#isFresh) return true;
    this.#attempt ??= this.#write().finally(() => {
      this.#attempt = undefined;
    });
    await withTimeout(this.#clock, ANSWER_MS, this.#attempt);
    return this.#isFresh;
  }

  get #isFresh(): boolean {
    return Math.abs(this.#clock.now() - this.#succeededAt) < FRESH_MS;
  }

  async #write(): Promise<void> {
    const outcome = await this.#store.commit([probeWrite(this.#hostId)]).catch(() => undefined);
    // A store that fails is the answer, not a failure of the probe.
    if (outcome?.committed) this.#succeededAt = this.#clock.now();
  }
}
