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
  return patternOf(timing).nextRun(new Date(after))?.getTime();
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
    return `is not a pattern: ${(error as Error).message.replace(/^CronPattern: /, '')}`;
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

function patternOf({ cron, timezone }: { readonly cron: string; readonly timezone: string }): Cron {
  return new Cron(cron, { timezone, mode: '5-or-6-parts' });
}
