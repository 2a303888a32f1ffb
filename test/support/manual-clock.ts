import type { Clock } from '../../src/system/clock.ts';
import { realClock } from '../../src/system/real.ts';

/** The clock of the machine, whose timers go on and whose time stands still: no rate fills up again. */
export function stillClock(): Clock {
  const start = realClock.now();
  return { ...realClock, now: () => start };
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
    for (const timer of due) {
      this.#timers.delete(timer);
      timer.action();
    }
  }
}
