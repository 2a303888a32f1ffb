import type { Bucket } from '../../../protocol/people/annotations.ts';

export interface Span {
  /** Where the whole bucket begins, also where only a part of it is in the stretch. */
  readonly start: number;
  readonly from: number;
  readonly before: number;
}

const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;
const WEEK_MS = 7 * DAY_MS;
/** The first Monday of the epoch. */
const MONDAY = 4 * DAY_MS;

interface Steps {
  floor(time: number): number;
  next(start: number): number;
}

const STEPS: Record<Bucket, Steps> = {
  hour: even(HOUR_MS),
  day: even(DAY_MS),
  week: even(WEEK_MS, MONDAY),
  month: { floor: (time) => monthOf(time, 0), next: (start) => monthOf(start, 1) },
};

function even(width: number, origin = 0): Steps {
  const floor = (time: number): number => Math.floor((time - origin) / width) * width + origin;
  return { floor, next: (start) => start + width };
}

function monthOf(time: number, later: number): number {
  const date = new Date(time);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + later, 1);
}

/** The buckets that a stretch of time falls into, in order; undefined when there are more than `most`. */
export function spansOf(bucket: Bucket, since: number, until: number, most: number): Span[] | undefined {
  const { floor, next } = STEPS[bucket];
  const spans: Span[] = [];
  for (let start = floor(since); start < until; start = next(start)) {
    if (spans.length === most) return undefined;
    spans.push({ start, from: Math.max(start, since), before: Math.min(next(start), until) });
  }
  return spans;
}
