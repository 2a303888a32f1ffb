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

/** Settles once the time has passed. */
export function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve);
  });
}
