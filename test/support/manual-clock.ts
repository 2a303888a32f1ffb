import type { Cancel, Clock } from '../../src/system/clock.ts';
import { realClock } from '../../src/system/real.ts';

/** The clock of the machine, whose timers go on and whose time stands still: no rate fills up again. */
export function stillClock(): Clock {
  const start = realClock.now();
  return { ...realClock, now: () => start };
}

/**
 * The clock of the machine, which a test can hurry. A PostgreSQL store has a time of its own: what waits there until it is
 * due is not hurried.
 */
export class HurriedClock implements Clock {
  #aheadMs = 0;
  readonly #timers = new Set<{ readonly at: number; readonly arm: () => void }>();

  readonly now = (): number => realClock.now() + this.#aheadMs;
  readonly processorMs = (): number => realClock.processorMs!();

  after(ms: number, action: () => void): Cancel {
    const at = this.now() + ms;
    let cancel: Cancel = () => {};
    const arm = (): void => {
      cancel();
      cancel = realClock.after(Math.max(0, at - this.now()), () => {
        this.#timers.delete(timer);
        action();
      });
    };
    const timer = { at, arm };
    this.#timers.add(timer);
    arm();
    return () => {
      this.#timers.delete(timer);
      cancel();
    };
  }

  soon(action: () => void): void {
    realClock.soon(action);
  }

  /** Lets a second pass every few milliseconds until the work is done. */
  async hurry<T>(work: Promise<T>): Promise<T> {
    const timer = setInterval(() => this.#forward(1_000), 10);
    return work.finally(() => clearInterval(timer));
  }

  /** Timers that are due by then fire in their order. */
  #forward(ms: number): void {
    this.#aheadMs += ms;
    for (const { arm } of [...this.#timers].sort((a, b) => a.at - b.at)) arm();
  }
}

/** A clock that a test moves. Turns are real: they only order what happens, they do not measure it. */
export class ManualClock implements Clock {
  #now = Date.parse('2026-01-01T00:00:00Z');
  readonly #timers = new Set<{ readonly at: number; readonly action: () => void }>();

  /** Processor time that was used; moving the clock uses none. */
  workedMs = 0;

  readonly now = (): number => this.#now;
  readonly processorMs = (): number => this.workedMs;

  after(ms: number, action: () => void): () => void {
    const timer = { at: this.#now + ms, action };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  soon(action: () => void): void {
    setImmediate(action);
  }

  advance(ms: number): void {
    this.#now += ms;
    const due = [...this.#timers].filter(({ at }) => at <= this.#now).sort((a, b) => a.at - b.at);
    // One of them may cancel another.
    for (const timer of due) if (this.#timers.delete(timer)) timer.action();
  }
}
