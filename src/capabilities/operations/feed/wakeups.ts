import { type Cancel, type Clock, sleep } from '../../../system/clock.ts';

/** Wakes readers that wait for news of a tenant. */
export class Wakeups {
  readonly #clock: Clock;
  readonly #listeners = new Map<string, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  wake(tenant: string): void {
    for (const listener of this.#listeners.get(tenant) ?? []) listener();
  }

  /** Listens until `stop`; a wake-up that comes while nobody waits ends the next wait. */
  listen(tenant: string, signal: AbortSignal): Wakeup {
    let woken = new AbortController();
    const onWake = (): void => woken.abort();
    const listeners = this.#listeners.get(tenant) ?? new Set();
    this.#listeners.set(tenant, listeners.add(onWake));
    signal.addEventListener('abort', onWake);
    return {
      wait: async (withinMs) => {
        await sleep(this.#clock, withinMs, woken.signal);
        woken = new AbortController();
        if (signal.aborted) woken.abort();
      },
      stop: () => {
        signal.removeEventListener('abort', onWake);
        listeners.delete(onWake);
        if (listeners.size === 0 && this.#listeners.get(tenant) === listeners) this.#listeners.delete(tenant);
      },
    };
  }
}

/** The wake-ups of one reader. */
export interface Wakeup {
  /** Settles after a wake-up since the last wait, when the time is up, or when the reader disconnects. */
  wait(withinMs: number): Promise<void>;
  readonly stop: Cancel;
}
