import { Cron } from 'croner';

/**
 * When something is due: once, or again and again by the clock on the wall of a time zone. Each such moment is a slot.
 * Where the clock jumps forward, a fixed time that does not exist is due at the jump; where it jumps back, a fixed time
 * that comes twice is due the first time. Patterns that repeat within the hours go on evenly through both.
 */
export type Timing = { readonly runAt: number } | { readonly cron: string; readonly timezone: string };

/** The first slot after a moment. */
export function nextSlot(timing: Timing, after: number): number | undefined {
  if ('runAt' in timing) return timing.runAt > after ? timing.runAt : undefined;
  const pattern = patternOf(timing);
  const found = pattern.nextRun(new Date(after))?.getTime();
  if (found === undefined) return undefined;
  // Croner passes over days that come after a change of month; from right before the change it finds them.
  const others = monthEnds(after, found, timing.timezone).map(
    (end) => pattern.nextRun(new Date(end))?.getTime() ?? found,
  );
  return Math.min(found, ...others);
}

/** The last slot that is not after a moment. */
export function latestSlot(timing: Timing, now: number): number | undefined {
  if ('runAt' in timing) return timing.runAt <= now ? timing.runAt : undefined;
  const followingSecond = new Date(Math.floor(now / 1_000) * 1_000 + 1_000);
  return patternOf(timing).previousRuns(1, followingSecond)[0]?.getTime();
}

/**
 * How many slots are after one moment and not after another: exact for up to `COUNTED_MAX`, otherwise estimated from the
 * hours that have slots and from the slots of one such hour, so that a dense pattern costs little time.
 */
export function slotCount(timing: Timing, after: number, until: number): number {
  let counted = 0;
  for (let at: number | undefined = after; counted <= COUNTED_MAX; counted++) {
    at = nextSlot(timing, at);
    if (at === undefined || at > until) return counted;
  }
  const spans = spansOf(timing);
  const [[hour, hourEnd], ...others] = spans(HOUR_MS, after, until) as [Span, ...Span[]];
  const [[minute, minuteEnd], ...minutes] = spans(MINUTE_MS, hour - 1, hourEnd - 1) as [Span, ...Span[]];
  const perMinute = spans(SECOND_MS, minute - 1, minuteEnd - 1).length;
  const whole = ([start, end]: Span): number => (Math.min(end, until) - Math.max(start, after)) / HOUR_MS;
  const hours = others.reduce((sum, other) => sum + whole(other), whole([hour, hourEnd]));
  return Math.round(hours * (1 + minutes.length) * perMinute);
}

const COUNTED_MAX = 200;
const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Start and end of a second, a minute or an hour. */
type Span = readonly [number, number];

/** Finds the seconds, minutes or hours between two moments that have a slot, by the clock of the time zone. */
function spansOf(timing: Timing): (unit: number, after: number, until: number) => Span[] {
  const offset = offsetsIn('cron' in timing ? timing.timezone : 'UTC');
  return (unit, after, until) => {
    const found: Span[] = [];
    for (let at = nextSlot(timing, after); at !== undefined && at <= until; ) {
      const ahead = offset(at);
      const start = Math.floor((at + ahead) / unit) * unit - ahead;
      found.push([start, start + unit]);
      at = nextSlot(timing, start + unit - SECOND_MS);
    }
    return found;
  };
}

/** What is wrong with a pattern, in words that can follow its name. */
export function cronProblem(cron: string): string | undefined {
  try {
    // Croner takes a date for a pattern that is due once; that is what runAt is for.
    return patternOf({ cron, timezone: 'UTC' }).getOnce() ? 'is a date, not a pattern: use runAt' : undefined;
  } catch (error) {
    const reason = (error as Error).message.replace(/^CronPattern: /, '').replace(/\.$/, '');
    return `is not a pattern: ${reason}. Give five fields (minute, hour, day, month, weekday), or six with seconds first.`;
  }
}

/** Names only: an offset knows nothing of summer. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: name }));
  } catch {
    return false;
  }
}

/** The last seconds of months between two moments, by the clock of a time zone. */
function monthEnds(after: number, until: number, timezone: string): number[] {
  const ends: number[] = [];
  const first = new Date(after);
  let offset: ((time: number) => number) | undefined;
  for (let month = first.getUTCMonth(); ; month++) {
    const start = Date.UTC(first.getUTCFullYear(), month, 1);
    if (start - DAY_MS > until) return ends;
    if (start + DAY_MS < after) continue;
    offset ??= offsetsIn(timezone);
    // The clock may jump just then.
    const both = [start - DAY_MS, start + DAY_MS].map((near) => start - offset!(near) - 1_000);
    ends.push(...both.filter((end) => end > after && end < until));
  }
}

const DAY_MS = 24 * 60 * 60 * 1_000;

/** How far the clock of a time zone is ahead of the universal one, for any number of moments. */
export function offsetsIn(timeZone: string): (time: number) => number {
  // To make one costs many times as much as to ask it.
  const format = new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' });
  return (time) => {
    const name = format.formatToParts(time).find(({ type }) => type === 'timeZoneName')?.value ?? '';
    const [, sign = '+', hours = '0', minutes = '0'] = /([+-])(\d\d):(\d\d)/.exec(name) ?? [];
    return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
  };
}

function patternOf({ cron, timezone }: { readonly cron: string; readonly timezone: string }): Cron {
  return new Cron(cron, { timezone, mode: '5-or-6-parts' });
}
