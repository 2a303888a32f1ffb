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
  const offset = offsetsIn(timezone);
  for (let month = first.getUTCMonth(); ; month++) {
    const start = Date.UTC(first.getUTCFullYear(), month, 1);
    if (start - DAY_MS > until) return ends;
    // The clock may jump just then.
    const both = [start - DAY_MS, start + DAY_MS].map((near) => start - offset(near) - 1_000);
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
