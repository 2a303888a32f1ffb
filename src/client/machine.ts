/** What a client takes from the machine it runs on. Handed in, so that a test decides when anything happens. */
export interface Machine {
  readonly fetch: typeof fetch;
  /** Epoch milliseconds. */
  now(): number;
  after(ms: number, action: () => void): () => void;
  /** From 0 to 1. */
  chance(): number;
  /** A name that nobody else has. */
  unique(): string;
}

/** Any platform that has `fetch`: Node and browsers alike. */
export const platform: Machine = {
  fetch: (...args) => fetch(...args),
  now: () => Date.now(),
  after(ms, action) {
    const timer = setTimeout(action, ms);
    return () => clearTimeout(timer);
  },
  chance: () => Math.random(),
  // Not randomUUID: browsers have that on secure pages only.
  unique: () =>
    [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join(''),
};

/** Settles once the time has passed; throws when the signal ends the wait. */
export function pause({ after }: Machine, ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      cancel();
      reject(signal!.reason);
    };
    const cancel = after(ms, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
