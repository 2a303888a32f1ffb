import { type Cancel, type Clock, sleep } from '../../../system/clock.ts';

/** Wakes those who wait for something of a tenant. A bell that rings while nobody waits is heard later. */
export class Bells {
  readonly #clock: Clock;
  readonly #listeners = new Map<string, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ring(tenant: string): void {
    for (const listener of this.#listeners.get(tenant) ?? []) listener();
  }

  listen(tenant: string, signal: AbortSignal): Bell {
    let heard = new AbortController();
    const onRing = (): void => heard.abort();
    const listeners = this.#listeners.get(tenant) ?? new Set();
    this.#listeners.set(tenant, listeners.add(onRing));
    signal.addEventListener('abort', onRing);
    return {
      heard: async (withinMs) => {
        await sleep(this.#clock, withinMs, heard.signal);
        heard = new AbortController();
        if (signal.aborted) heard.abort();
      },
      stop: () => {
        signal.removeEventListener('abort', onRing);
        listeners.delete(onRing);
        if (listeners.size === 0 && this.#listeners.get(tenant) === listeners) this.#listeners.delete(tenant);
      },
    };
  }
}

export interface Bell {
  /** Settles when the bell has rung since the last time, or the time is up, or there is nobody to wait for any more. */
  heard(withinMs: number): Promise<void>;
  readonly stop: Cancel;
}
