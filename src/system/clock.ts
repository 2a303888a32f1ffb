/** Cancels a scheduled action; has no effect once the action has run. */
export type Cancel = () => void;

/**
 * The source of time and the scheduler of callbacks. It is passed in, so that a simulation controls when anything
 * happens.
 */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  /** Runs an action after so many milliseconds. */
  after(ms: number, action: () => void): Cancel;
  /** Runs an action after the current turn of the event loop, including input that has already arrived. */
  soon(action: () => void): void;
  /** Milliseconds since some moment, by a clock that nobody sets; where there is none, `now` has to do. */
  monotonicMs?(): number;
  /** The processor time that this thread has used, in milliseconds, where it is known. */
  processorMs?(): number;
}

/** Resolves after `ms`, or as soon as the signal is aborted; it never rejects. */
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

/**
 * Resolves with the result of `work`, or with undefined after `ms`. The work itself is not cancelled. A process that stood
 * still finds its timers due before it reads what has arrived meanwhile: a result that is there by then counts.
 */
export async function withTimeout<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T | undefined> {
  let cancel: Cancel = () => {};
  const timeout = new Promise<undefined>((resolve) => {
    cancel = clock.after(ms, () => clock.soon(() => resolve(undefined)));
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    cancel();
  }
}

/** A clock that is put right by what it differs from another one. Timers are left alone: they measure durations. */
export class CorrectedClock implements Clock {
  readonly #own: Clock;
  /** What is added to the own time. */
  offsetMs: number;

  constructor(own: Clock, offsetMs = 0) {
    this.#own = own;
    this.offsetMs = offsetMs;
  }

  // Functions of their own, because callers pass them on.
  readonly now = (): number => this.#own.now() + this.offsetMs;
  readonly after = (ms: number, action: () => void): Cancel => this.#own.after(ms, action);
  readonly soon = (action: () => void): void => this.#own.soon(action);
  readonly monotonicMs = (): number => this.#own.monotonicMs?.() ?? this.#own.now();
  readonly processorMs = (): number => this.#own.processorMs?.() ?? this.#own.now();

  /** The time before it is put right. */
  ownNow(): number {
    return this.#own.now();
  }
}
