import type { JsonObject } from '../../../protocol/format/json.ts';
import type { PreviewCalendar } from '../../../protocol/learning/previews.ts';
import { nextSlot } from '../../starting/schedules/door.ts';
import { timestamp } from '../../timestamps.ts';

const NEXT_FIRINGS = 10;
/** Firings that are looked at in the time of past starts. */
const PAST_FIRINGS_MAX = 1_000;
const UNMATCHED_MAX = 50;
const MINUTE_MS = 60_000;
/** A start and a firing that are further apart have nothing to do with each other. */
const NEAR_MS = 3 * 60 * MINUTE_MS;

/** A run that somebody started. */
interface Start {
  readonly runId: string;
  readonly at: number;
}

/** Holds the firings of a drafted schedule against the times at which people started its workflow. */
export function calendarOf(artifact: JsonObject, starts: readonly Start[], now: number): PreviewCalendar {
  const { cron, runAt, timezone = 'UTC' } = artifact as { cron?: string; runAt?: string; timezone?: string };
  const firings = (from: number, until: number, limit: number): number[] => {
    if (cron === undefined) return runAt !== undefined && Date.parse(runAt) > from ? [Date.parse(runAt)] : [];
    const found: number[] = [];
    for (let at: number | undefined = from; found.length < limit; ) {
      at = nextSlot({ cron, timezone }, at);
      if (at === undefined || at > until) break;
      found.push(at);
    }
    return found;
  };
  const times = starts.map(({ at }) => at);
  const past =
    starts.length === 0 ? [] : firings(Math.min(...times) - NEAR_MS, Math.max(...times) + NEAR_MS, PAST_FIRINGS_MAX);
  return {
    timezone,
    next: firings(now, Number.POSITIVE_INFINITY, NEXT_FIRINGS).map(timestamp),
    starts: starts.map(({ runId, at }) => ({ runId, startedAt: timestamp(at), ...nearest(at, past) })),
    unmatched: past
      .filter((firing) => !times.some((at) => Math.abs(at - firing) <= NEAR_MS))
      .slice(0, UNMATCHED_MAX)
      .map(timestamp),
  };
}

function nearest(at: number, firings: readonly number[]): { firing?: string; minutesLater?: number } {
  const [firing] = firings
    .filter((each) => Math.abs(each - at) <= NEAR_MS)
    .sort((one, other) => Math.abs(one - at) - Math.abs(other - at));
  if (firing === undefined) return {};
  return { firing: timestamp(firing), minutesLater: Math.round((firing - at) / MINUTE_MS) };
}
