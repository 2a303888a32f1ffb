import type { Clock } from './clock.ts';

/** Work that takes longer lets others in between. */
const TURN_MS = 10;

/** Resolves after the event loop has served whoever waits for it. */
export function turnOf(clock: Pick<Clock, 'soon'>): Promise<void> {
  return new Promise((resolve) => clock.soon(resolve));
}

/** The breaks of one piece of long work, in which the event loop serves others. */
export class Breaks {
  readonly #clock: Pick<Clock, 'now' | 'soon'>;
  #since: number;

  constructor(clock: Pick<Clock, 'now' | 'soon'>) {
    this.#clock = clock;
    this.#since = clock.now();
  }

  /** Whether the work has gone on for long since the last break. */
  get isDue(): boolean {
    return this.#clock.now() - this.#since >= TURN_MS;
  }

  /** Takes a break if one is due. */
  async take(): Promise<void> {
    if (!this.isDue) return;
    await turnOf(this.#clock);
    this.#since = this.#clock.now();
  }
}
