import type { Clock } from '../../src/system/clock.ts';

/** Chance that a seed decides. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number from `min` up to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  pick<T>(items: readonly T[]): T {
    return items[this.between(0, items.length - 1)]!;
  }
}

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly action: () => void;
}

/** More turns than this without the time moving on, and the world is going round in circles. */
const TURNS_PER_MOMENT_MAX = 200_000;

/** A world in which nothing happens by itself: time moves only when everybody sleeps. */
export class World {
  readonly random: Random;
  #now = Date.parse('2026-01-01T00:00:00Z');
  #order = 0;
  /** In the order in which they are due. */
  readonly #timers: Timer[] = [];
  readonly #soon: (() => void)[] = [];

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  readonly now = (): number => this.#now;

  /** A clock that falls silent with its owner. */
  clock(isAlive: () => boolean = () => true): Clock {
    const guard = (action: () => void) => () => {
      if (isAlive()) action();
    };
    return {
      now: this.now,
      soon: (action) => void this.#soon.push(guard(action)),
      after: (ms, action) => {
        const timer = { at: this.#now + Math.max(0, ms), order: this.#order++, action: guard(action) };
        this.#timers.splice(this.#placeOf(timer), 0, timer);
        return () => {
          const index = this.#placeOf(timer);
          if (this.#timers[index] === timer) this.#timers.splice(index, 1);
        };
      },
    };
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.clock().after(ms, resolve);
    });
  }

  /** Lets things happen until `until`, or until `isDone`. */
  async run(until: number, isDone: () => boolean = () => false): Promise<void> {
    for (let turns = 0; !isDone(); ) {
      await everybodyWaits();
      const action = this.#soon.shift();
      if (action) {
        action();
        if (++turns > TURNS_PER_MOMENT_MAX) throw new Error(`the world goes round in circles at ${this.#now}`);
        continue;
      }
      const [next] = this.#timers;
      if (!next || next.at > until) break;
      if (next.at > this.#now) turns = 0;
      this.#now = Math.max(this.#now, next.at);
      this.#timers.shift();
      next.action();
    }
    if (Number.isFinite(until)) this.#now = Math.max(this.#now, until);
  }

  /** Lets things happen until a promise settles. */
  async settle<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const done = (): void => {
      isSettled = true;
    };
    promise.then(done, done);
    await this.run(Number.POSITIVE_INFINITY, () => isSettled);
    return promise;
  }

  /** Where a timer is, or belongs. */
  #placeOf({ at, order }: Timer): number {
    let [from, to] = [0, this.#timers.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      const other = this.#timers[middle]!;
      if (other.at < at || (other.at === at && other.order < order)) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}

/** Promises settle in micro-turns; after a real turn of the event loop there are none left. */
function everybodyWaits(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
