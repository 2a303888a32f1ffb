import { randomFillSync } from 'node:crypto';
import type { Clock } from './clock.ts';
import { digits, type Ids, RANDOM_DIGITS, sortableIds } from './ids.ts';

/** The real clock and randomness. No other file of the host reads them, so tests can replace them. */

/** The machine's clock and timers. */
export const realClock: Clock = {
  now: () => Date.now(),
  after(ms, action) {
    const timer = setTimeout(action, Math.min(ms, TIMER_MAX_MS));
    return () => clearTimeout(timer);
  },
  soon(action) {
    setImmediate(action);
  },
  monotonicMs: () => performance.now(),
  processorMs() {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  },
};

/** Node fires a longer timer at once. An action that is due later is woken early and must check the time again. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Generates ids from a clock, the machine's unless given, and a cryptographic random source. */
export function realIds(clock: Pick<Clock, 'now'> = realClock): Ids {
  return sortableIds(() => clock.now(), base36Source());
}

/** All pairs of digits: a random number of two bytes is one of them. */
const PAIRS = Array.from({ length: 36 ** 2 }, (_, pair) => digits(pair, 2));
/** The largest multiple of their number: from it on, numbers are discarded, so that every pair is equally likely. */
const PAIRS_FROM = 2 ** 16 - (2 ** 16 % PAIRS.length);

function base36Source(): () => string {
  const pool = new Uint16Array(2_048);
  let position = pool.length;
  const nextNumber = (): number => {
    if (position === pool.length) {
      randomFillSync(pool);
      position = 0;
    }
    return pool[position++]!;
  };
  return () => {
    let random = '';
    while (random.length < RANDOM_DIGITS) {
      const number = nextNumber();
      if (number < PAIRS_FROM) random += PAIRS[number % PAIRS.length]!;
    }
    return random;
  };
}
