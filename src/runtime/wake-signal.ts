import type { Clock } from '../system/clock.ts';

/** What a drive waits for when it has nothing to do. */
export class WakeSignal {
  readonly #clock: Clock;
  #onSignal: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends the wait, if there is one. */
  readonly give = (): void => this.#onSignal?.();

  /** Resolves at the next signal; at a time without one, if there is a time. */
  wait(until: number | null): Promise<void> {
    return new Promise((resolve) => {
      const cancel =
        until === null ? () => {} : this.#clock.after(Math.max(0, until - this.#clock.now()), () => this.give());
      this.#onSignal = () => {
        cancel();
        this.#onSignal = undefined;
        resolve();
      };
    });
  }
}
