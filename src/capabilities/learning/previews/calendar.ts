import type { JsonObject } from '../../../protocol/format/json.ts';
import type { PreviewCalendar } from '../../../protocol/learning/previews.ts';
import { latestSlot, nextSlot, type Timing } from '../../starting/schedules/door.ts';
import { timestamp } from '../../timestamps.ts';

const NEXT_FIRINGS = 10;
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
  const timing = cron === undefined ? { runAt: Date.parse(runAt ?? '') } : { cron, timezone };
  return {
    timezone,
    next: nextFirings(timing, now).map(timestamp),
    starts: starts.map(({ runId, at }) => ({ runId, startedAt: timestamp(at), ...nearest(at, timing) })),
    unmatched: unmatchedFirings(
      timing,
      starts.map(({ at }) => at),
    ).map(timestamp),
  };
}

function nextFirings(timing: Timing, now: number): number[] {
  const found: number[] = [];
  for (let at = nextSlot(timing, now); at !== undefined && found.length < NEXT_FIRINGS; at = nextSlot(timing, at)) {
    found.push(at);
  }
  return found;
}

/** The first firings that are near no start. Those near a start are skipped at once, however many there are. */
function unmatchedFirings(timing: Timing, times: readonly number[]): number[] {
  if (times.length === 0) return [];
  const found: number[] = [];
  const until = Math.max(...times) + NEAR_MS;
  let at = nextSlot(timing, Math.min(...times) - NEAR_MS);
  while (at !== undefined && at <= until && found.length < UNMATCHED_MAX) {
    const firing = at;
    const near = times.filter((time) => Math.abs(time - firing) <= NEAR_MS);
    if (near.length === 0) found.push(firing);
    at = nextSlot(timing, near.length === 0 ? firing : Math.max(...near) + NEAR_MS);
  }
  return found;
}

function nearest(at: number, timing: Timing): { firing?: string; minutesLater?: number } {
  const around = [latestSlot(timing, at), nextSlot(timing, at)];
  const [firing] = around
    .filter((each) => each !== undefined && Math.abs(each - at) <= NEAR_MS)
    .sort((one, other) => Math.abs(one! - at) - Math.abs(other! - at));
  if (firing === undefined) return {};
  return { firing: timestamp(firing), minutesLater: Math.round((firing - at) / MINUTE_MS) };
}
