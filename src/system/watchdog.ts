import type { Cancel, Clock } from './clock.ts';

/** How often the watchdog looks at the clock by itself. */
const TICK_MS = 100;

/** Is told what kept the event loop from turning, and for how long. */
type OnBlocked = (operation: string, ms: number) => void;

/**
 * Notices when the event loop does not turn, and names what it was doing. Whatever may take long notes its name when it
 * begins, which costs a look at the clock. In a loop that turns, notes and ticks follow each other closely; a gap is
 * the time of what was noted last.
 */
export class Watchdog {
  readonly #clock: Clock;
  #onBlocked: OnBlocked | undefined;
  #thresholdMs = Number.POSITIVE_INFINITY;
  #operation: string | undefined;
  #notedAt = 0;
  #cancel: Cancel | undefined;
  /** The processor time of the thread at the last tick. */
  #workedAt: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes what begins now. Names are public in metrics, so they name kinds of work and never a tenant or a run. */
  note(operation: string): void {
    if (this.#onBlocked) this.#turn(operation);
  }

  /** Starts to report; before that, notes cost nothing. */
  start(thresholdMs: number, onBlocked: OnBlocked): void {
    this.#thresholdMs = thresholdMs;
    this.#onBlocked = onBlocked;
    this.#notedAt = this.#clock.now();
    this.#tick();
  }

  stop(): void {
    this.#cancel?.();
    this.#onBlocked = undefined;
  }

  /**
   * The processor time of this turn of the event loop, or a tick more; undefined where it is not known. A machine that
   * is busy, or was frozen, makes a turn long without it.
   */
  workedMs(): number | undefined {
    return this.#workedAt === undefined ? undefined : this.#clock.processorMs!() - this.#workedAt;
  }

  #tick(): void {
    this.#turn(undefined);
    this.#workedAt = this.#clock.processorMs?.();
    this.#cancel = this.#clock.after(TICK_MS, () => this.#tick());
  }

  #turn(next: string | undefined): void {
    const now = this.#clock.now();
    // Up to a tick may have passed before the operation that blocks.
    const blockedMs = now - this.#notedAt - (this.#operation === undefined ? TICK_MS : 0);
    if (blockedMs >= this.#thresholdMs) this.#onBlocked?.(this.#operation ?? 'other', blockedMs);
    this.#operation = next;
    this.#notedAt = now;
  }
}
