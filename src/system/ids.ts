/** Makes identifiers: the prefix, then 22 lower-case letters and digits that sort by the time they were made. */
export interface Ids {
  next(prefix: string): string;
}

const TIME_DIGITS = 9;
const COUNT_DIGITS = 3;
const COUNT_MAX = 36 ** COUNT_DIGITS;
export const CHANCE_DIGITS = 10;

/** `chance` gives CHANCE_DIGITS unpredictable base-36 digits each time. */
export function sortableIds(now: () => number, chance: () => string): Ids {
  let time = 0;
  let count = 0;
  return {
    next(prefix) {
      const current = now();
      if (current > time) {
        time = current;
        count = 0;
      } else if (++count === COUNT_MAX) {
        time++;
        count = 0;
      }
      return prefix + digits(time, TIME_DIGITS) + digits(count, COUNT_DIGITS) + chance();
    },
  };
}

/** When an id was made; ids of one maker never go back in time. */
export function timeOf(id: string, prefix: string): number {
  return Number.parseInt(id.slice(prefix.length, prefix.length + TIME_DIGITS), 36);
}

/** What ids made from that time on begin with. */
export function firstIdAt(time: number, prefix: string): string {
  return prefix + digits(Math.max(0, time), TIME_DIGITS);
}

export function digits(value: number, width: number): string {
  return value.toString(36).padStart(width, '0');
}
