import type { Cancel, Clock } from './clock.ts';

/** How often the watchdog looks at the clock by itself. */
const TICK_MS = 100;
/**
 * How often it does where nothing was noted since the last time: an idle process should not be woken more often. What
 * nobody notes and takes less than this is then found by chance alone.
 */
const RESTING_TICK_MS = 1_000;

/** What the watchdog reports to. */
interface WatchdogListener {
  /** `ms`: how long the operation kept the event loop from turning. */
  onBlocked(operation: string, ms: number): void;
  /** `lateMs`: how late a timer of the watchdog fired. */
  onTick?(lateMs: number): void;
}

/**
 * Notices when the event loop does not turn, and names what it was doing. Whatever may take long notes its name when it
 * begins, which costs a look at the clock. In a loop that turns, notes and ticks follow each other closely; a gap is
 * the time of what was noted last.
 */
export class Watchdog {
  readonly #clock: Clock;
  #listener: WatchdogListener | undefined;
  #thresholdMs = Number.POSITIVE_INFINITY;
  #operation: string | undefined;
  #notedAt = 0;
  #tickMs = TICK_MS;
  #tickDueAt = 0;
  #cancel: Cancel | undefined;
  /** The processor time of the thread at the last tick. */
  #workedAt: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes what begins now. Names are public in metrics, so they name kinds of work and never a tenant or a run. */
  note(operation: string): void {
    if (!this.#listener) return;
    this.#turn(operation);
    if (this.#tickMs !== RESTING_TICK_MS) return;
    // The timer that is replaced here may be overdue.
    if (this.#now() > this.#tickDueAt) this.#reportLateness();
    this.#tickAfter(TICK_MS);
  }

  /** Starts to report; before that, notes cost nothing. */
  start(thresholdMs: number, listener: WatchdogListener): void {
    this.#thresholdMs = thresholdMs;
    this.#listener = listener;
    this.#notedAt = this.#now();
    this.#tick();
  }

  stop(): void {
    this.#cancel?.();
    this.#listener = undefined;
  }

  /**
   * The processor time of this turn of the event loop, or a tick more; undefined where it is not known. A machine that
   * is busy, or was frozen, makes a turn long without it.
   */
  workedMs(): number | undefined {
    return this.#workedAt === undefined ? undefined : this.#clock.processorMs!() - this.#workedAt;
  }

  #tick(): void {
    const isResting = this.#operation === undefined;
    this.#turn(undefined);
    this.#workedAt = this.#clock.processorMs?.();
    this.#tickAfter(isResting ? RESTING_TICK_MS : TICK_MS);
  }

  #tickAfter(ms: number): void {
    this.#cancel?.();
    this.#tickMs = ms;
    this.#tickDueAt = this.#now() + ms;
    this.#cancel = this.#clock.after(ms, () => {
      this.#reportLateness();
      this.#tick();
    });
  }

  #reportLateness(): void {
    this.#listener?.onTick?.(Math.max(0, this.#now() - this.#tickDueAt));
  }

  /** Not the time of day, which somebody may set or put right meanwhile. */
  #now(): number {
    return this.#clock.monotonicMs?.() ?? this.#clock.now();
  }

  #turn(next: string | undefined): void {
    const now = this.#now();
    // Up to a tick may have passed before the operation that blocks.
    const blockedMs = now - this.#notedAt - (this.#operation === undefined ? this.#tickMs : 0);
    if (blockedMs >= this.#thresholdMs) this.#listener?.onBlocked(this.#operation ?? 'other', blockedMs);
    this.#operation = next;
    this.#notedAt = now;
  }
}
