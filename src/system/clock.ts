/** Undoes what was arranged; harmless when it has happened already. */
export type Cancel = () => void;

/** Time and turns. Handed in, so that a simulation decides when anything happens. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  after(ms: number, action: () => void): Cancel;
  /** Runs an action once what is happening now is over, input that has already arrived included. */
  soon(action: () => void): void;
}

/** Settles once the time has passed, or the signal says that there is nothing more to wait for. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const cancel = clock.after(ms, done);
    signal?.addEventListener('abort', done, { once: true });
  });
}

/** What comes of some work, or nothing where that takes too long. The work itself goes on. */
export async function inTime<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T | undefined> {
  const isOver = new AbortController();
  const tooLate = sleep(clock, ms, isOver.signal).then(() => undefined);
  try {
    return await Promise.race([work, tooLate]);
  } finally {
    isOver.abort();
  }
}
