/** Generates identifiers: a prefix, then 22 lower-case letters and digits that sort by creation time. */
export interface Ids {
  next(prefix: string): string;
}

const TIME_DIGITS = 9;
const COUNT_DIGITS = 3;
const COUNT_MAX = 36 ** COUNT_DIGITS;
/** Number of random base-36 digits in an id. */
export const RANDOM_DIGITS = 10;

/**
 * Makes a generator whose ids strictly increase, even if the clock stands still or goes back. `chance` returns
 * RANDOM_DIGITS unpredictable digits.
 */
export function sortableIds(now: () => number, chance: () => string): Ids {
  let time = 0;
  let timeDigits = digits(time, TIME_DIGITS);
  let count = 0;
  const moveTo = (next: number): void => {
    time = next;
    timeDigits = digits(time, TIME_DIGITS);
    count = 0;
  };
  return {
    next(prefix) {
      const current = now();
      if (current > time) moveTo(current);
      else if (++count === COUNT_MAX) moveTo(time + 1);
      return prefix + timeDigits + digits(count, COUNT_DIGITS) + chance();
    },
  };
}

/** Extracts the creation time of an id, in epoch milliseconds. */
export function timeOf(id: string, prefix: string): number {
  return Number.parseInt(id.slice(prefix.length, prefix.length + TIME_DIGITS), 36);
}

/** A lower bound for all ids created at or after a time, so that a time range becomes an id range. */
export function firstIdAt(time: number, prefix: string): string {
  return prefix + digits(Math.max(0, time), TIME_DIGITS);
}

/** A number in base 36, padded to a fixed width so that text order is numeric order. */
export function digits(value: number, width: number): string {
  return value.toString(36).padStart(width, '0');
}
