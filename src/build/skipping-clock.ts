import type { Cancel, Clock } from '../system/clock.ts';

interface Timer {
  readonly at: number;
  readonly run: () => void;
  readonly cancel: Cancel;
}

/** A clock that goes on by itself, and that can be put forward: waits of days are over at once. */
export class SkippingClock implements Clock {
  readonly #own: Clock;
  readonly #timers = new Set<Timer>();
  #skippedMs = 0;

  constructor(own: Clock) {
    this.#own = own;
  }

  // Functions of their own, because callers pass them on.
  readonly now = (): number => this.#own.now() + this.#skippedMs;
  readonly soon = (action: () => void): void => this.#own.soon(action);

  readonly after = (ms: number, action: () => void): Cancel => {
    const run = (): void => {
      this.#timers.delete(timer);
      action();
    };
    const timer: Timer = { at: this.now() + ms, run, cancel: this.#own.after(ms, run) };
    this.#timers.add(timer);
    return () => {
      timer.cancel();
      this.#timers.delete(timer);
    };
  };

  /** Puts the clock forward and does what was to happen until then, in order. */
  skipTo(time: number): void {
    this.#skippedMs += Math.max(0, time - this.now());
    const due = [...this.#timers].filter(({ at }) => at <= time).sort((a, b) => a.at - b.at);
    for (const timer of due) {
      timer.cancel();
      timer.run();
    }
  }
}
