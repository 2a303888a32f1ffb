import { NodeFailure } from './node-failure.ts';

/** Something that each tenant may do a limited number of times at once; further calls wait for their turn. */
export class TenantSlots {
  readonly #perTenant: number;
  readonly #lines = new Map<string, { running: number; readonly waiting: (() => void)[] }>();

  constructor(perTenant: number) {
    this.#perTenant = perTenant;
  }

  /** Does something when the tenant has a slot; fails, to be retried, if the signal is aborted before. */
  async within<T>(tenant: string, signal: AbortSignal, act: () => Promise<T>): Promise<T> {
    await this.#enter(tenant, signal);
    try {
      return await act();
    } finally {
      this.#leave(tenant);
    }
  }

  #enter(tenant: string, signal: AbortSignal): Promise<void> {
    const line = this.#lines.get(tenant) ?? { running: 0, waiting: [] };
    this.#lines.set(tenant, line);
    if (line.running < this.#perTenant) {
      line.running++;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = (): void => {
        const place = line.waiting.indexOf(begin);
        if (place >= 0) line.waiting.splice(place, 1);
        reject(
          new NodeFailure({
            code: 'upstream_unavailable',
            message: 'Timed out waiting for a free slot of this tenant.',
            retryable: true,
          }),
        );
      };
      line.waiting.push(begin);
      signal.addEventListener('abort', giveUp, { once: true });
      if (signal.aborted) giveUp();
    });
  }

  /** Passes the slot on to the next in line. */
  #leave(tenant: string): void {
    const line = this.#lines.get(tenant)!;
    const next = line.waiting.shift();
    if (next) next();
    else if (--line.running === 0) this.#lines.delete(tenant);
  }
}
