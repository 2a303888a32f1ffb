import type { Bucket } from '../../../protocol/people/annotations.ts';

/** A bucket, cut to the period. */
export interface Span {
  /** Start of the whole bucket, even if the period begins later. */
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

/** The buckets of a period, in order; undefined if there are more than `bucketsMax`. */
export function spansOf(bucket: Bucket, since: number, until: number, bucketsMax: number): Span[] | undefined {
  const { floor, next } = STEPS[bucket];
  const spans: Span[] = [];
  for (let start = floor(since); start < until; start = next(start)) {
    if (spans.length === bucketsMax) return undefined;
    spans.push({ start, from: Math.max(start, since), before: Math.min(next(start), until) });
  }
  return spans;
}
