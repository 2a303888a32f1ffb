import { type Refusal, refuse } from '../protocol/errors.ts';
import type { Bucket } from '../protocol/format/choices.ts';
import { RUN_PREFIX } from '../runtime/creation.ts';
import { firstIdAt } from '../system/ids.ts';

/** A bucket, cut to the period. */
interface Span {
  /** Start of the whole bucket, even if the period begins later. */
  readonly start: number;
  readonly from: number;
  readonly before: number;
}

const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;

/** Periods that are equally long, from an origin on. */
export interface EvenPeriod {
  readonly widthMs: number;
  readonly origin: number;
}

/** Days, and weeks that begin on Monday: the epoch began on a Thursday. */
export const EVEN_PERIODS: Readonly<Record<'day' | 'week', EvenPeriod>> = {
  day: { widthMs: DAY_MS, origin: 0 },
  week: { widthMs: 7 * DAY_MS, origin: 4 * DAY_MS },
};

interface Steps {
  floor(time: number): number;
  next(start: number): number;
}

const STEPS: Record<Bucket, Steps> = {
  hour: even({ widthMs: HOUR_MS, origin: 0 }),
  day: even(EVEN_PERIODS.day),
  week: even(EVEN_PERIODS.week),
  month: { floor: (time) => monthOf(time, 0), next: (start) => monthOf(start, 1) },
};

function even({ widthMs, origin }: EvenPeriod): Steps {
  const floor = (time: number): number => Math.floor((time - origin) / widthMs) * widthMs + origin;
  return { floor, next: (start) => start + widthMs };
}

function monthOf(time: number, later: number): number {
  const date = new Date(time);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + later, 1);
}

/** A period, in buckets. */
export interface Period {
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  readonly bucket: Bucket;
}

/** Runs that were started in a period, as a range of ids: ids sort by time. */
export interface IdRange {
  readonly from: string;
  readonly before: string;
}

const SPAN_DEFAULT_MS = 30 * DAY_MS;
const BUCKETS_MAX = 400;
/** The latest time that an id can hold. */
const END_OF_TIME = 36 ** 9 - 1;

/** The period in buckets; by default the last 30 days. */
export function bucketsOf({ since, until, bucket }: Period, now: number): readonly Span[] | Refusal {
  const from = since ?? (until ?? now) - SPAN_DEFAULT_MS;
  const before = until ?? Math.max(now, from) + 1;
  if (from >= before) return refuse('validation_error', 'since must come before until.', { field: 'since' });
  const spans = spansOf(bucket, from, before, BUCKETS_MAX);
  if (spans) return spans;
  const message = `The period has more than ${BUCKETS_MAX} buckets. Use larger buckets or a shorter period.`;
  return refuse('validation_error', message, { field: 'bucket', max: BUCKETS_MAX });
}

/** Without an end, runs from slightly in the future count, too: the clock of the host that started them may be ahead. */
export function idsOf({ from, before }: Pick<Span, 'from' | 'before'>, isOpen: boolean): IdRange {
  return { from: firstIdAt(from, RUN_PREFIX), before: firstIdAt(isOpen ? END_OF_TIME : before, RUN_PREFIX) };
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
