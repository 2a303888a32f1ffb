import { offsetsIn } from '../../starting/schedules/door.ts';

/** When something recurs, as a cron expression and in words. */
export interface Rhythm {
  readonly cron: string;
  readonly timezone: string;
  readonly words: string;
  /** How many of the latest moments follow it. */
  readonly kept: number;
}

/** What counts as a rhythm. */
export interface RhythmRules {
  /** Moments that a rhythm must have. */
  readonly supportMin: number;
  /** What recurs more often is not a rhythm of people. */
  readonly periodMinMs: number;
  /** Time zones that people may go by, the likeliest first. */
  readonly timezones: readonly string[];
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const WEEK_MS = 7 * DAY_MS;

/** Standard deviation of the gaps, as a share of their mean. */
const VARIATION_MAX = 0.15;
/** At least two gaps: one gap says nothing about regularity. */
const MOMENTS_MIN = 3;
/** How far from the usual time of day a start may be. */
const TIME_OF_DAY_TOLERANCE_MS = 20 * MINUTE_MS;
/** Share of the days of a pattern on which there must have been a start. */
const DAYS_KEPT_MIN = 0.8;
/** Times of day are rounded to this. */
const GRAIN_MS = 5 * MINUTE_MS;
/** For periods from a minute on: how far the nearest cron period may be off. */
const PERIOD_OFF_MAX = 0.25;

/**
 * One time zone for each rule of daylight saving time. A habit that is kept by the local clock of one of them, and by no
 * clock that is known, tells where people live; another zone with the same rule gives the same moments.
 */
const DAYLIGHT_SAVING = [
  'Europe/Berlin',
  'America/New_York',
  'Australia/Sydney',
  'Pacific/Auckland',
  'America/Santiago',
];

/**
 * The rhythm of moments, given oldest first: once or twice a day at the same local times, or at equal distances. The latest moments
 * must follow it, and at least half of all: among many moments a few are always regular by chance.
 */
export function rhythmOf(moments: readonly number[], rules: RhythmRules): Rhythm | undefined {
  const least = Math.max(rules.supportMin, MOMENTS_MIN, Math.ceil(moments.length / 2));
  return dailyRhythm(moments, rules, least) ?? evenRhythm(moments, rules, least);
}

/** The times of a clock that people may go by. */
interface LocalTimes {
  readonly timezone: string;
  readonly local: readonly number[];
}

/** Once a day, or else twice a day. */
function dailyRhythm(
  moments: readonly number[],
  { periodMinMs, timezones }: RhythmRules,
  least: number,
): Rhythm | undefined {
  const isTooShort = (moments.at(-1) ?? 0) - (moments[0] ?? 0) < (MOMENTS_MIN - 1.5) * DAY_MS;
  if (isTooShort || periodMinMs > DAY_MS) return undefined;
  const clocks = [...timezones, ...DAYLIGHT_SAVING].map((timezone) => ({
    timezone,
    local: localTimes(moments, timezone),
  }));
  return bestDaily(clocks, least, sameTimeOfDay) ?? bestDaily(clocks, least, twoTimesOfDay);
}

/** The rhythm of local times, if all of them follow it. */
type DailyPattern = (local: readonly number[], timezone: string) => Rhythm | undefined;

/** The daily rhythm that most moments keep. Of several, that of the likeliest zone. */
function bestDaily(clocks: readonly LocalTimes[], least: number, pattern: DailyPattern): Rhythm | undefined {
  let best: Rhythm | undefined;
  for (const { local, timezone } of clocks) {
    const rhythm = latestBy(local, timezone, least, pattern);
    if (rhythm && rhythm.kept > (best?.kept ?? 0)) best = rhythm;
  }
  return best;
}

function latestBy(
  local: readonly number[],
  timezone: string,
  least: number,
  pattern: DailyPattern,
): Rhythm | undefined {
  for (let kept = local.length; kept >= least; kept--) {
    const rhythm = pattern(local.slice(-kept), timezone);
    if (rhythm) return rhythm;
  }
  return undefined;
}

/** All moments at one time of day, one a day, on days that a pattern of weekdays names. */
function sameTimeOfDay(local: readonly number[], timezone: string): Rhythm | undefined {
  const usual = usualTime(local);
  if (!usual) return undefined;
  const { hour, minute } = clockAt(usual.time);
  const words = `${usual.weekdays.words} at about ${clockText(usual.time)} (${timezone})`;
  return { cron: `${minute} ${hour} * * ${usual.weekdays.field}`, timezone, words, kept: local.length };
}

interface UsualTime {
  /** Time of day, in milliseconds from midnight. */
  readonly time: number;
  readonly weekdays: Weekdays;
}

/** The time of day that all moments are near, once a day on days that a pattern of weekdays names. */
function usualTime(local: readonly number[]): UsualTime | undefined {
  const time = toGrain(meanPhase(local, DAY_MS)) % DAY_MS;
  const isNear = (moment: number): boolean => phaseDistance(moment, time, DAY_MS) <= TIME_OF_DAY_TOLERANCE_MS;
  if (!local.every(isNear)) return undefined;
  // Around midnight the day is that of the usual time, not that of the moment.
  const days = local.map((moment) => Math.round((moment - time) / DAY_MS));
  if (new Set(days).size < days.length) return undefined;
  const weekdays = weekdaysOf(days);
  return weekdays && { time, weekdays };
}

/**
 * All moments at one of two times of day, on the same days. One cron expression has one minute for both hours, so the
 * minutes must be the same, or so near that one between them will do.
 */
function twoTimesOfDay(local: readonly number[], timezone: string): Rhythm | undefined {
  const halves = isAtTwoTimes(local) ? splitByTimeOfDay(local) : undefined;
  if (!halves || halves.some(({ length }) => length < MOMENTS_MIN)) return undefined;
  const [one, other] = halves.map(usualTime);
  if (!one || !other || one.weekdays.field !== other.weekdays.field) return undefined;
  const times = atCommonMinute([one.time, other.time].sort((a, b) => a - b));
  if (!times) return undefined;
  const hours = times.map((time) => clockAt(time).hour).join(',');
  const words = `${one.weekdays.words} at about ${times.map(clockText).join(' and ')} (${timezone})`;
  const cron = `${clockAt(times[0]!).minute} ${hours} * * ${one.weekdays.field}`;
  return { cron, timezone, words, kept: local.length };
}

/** Whether all moments are near the first, or near the first of the others. Few are by chance, so this saves sorting. */
function isAtTwoTimes(local: readonly number[]): boolean {
  const isNear = (one: number, other = 0): boolean =>
    phaseDistance(one, phaseOf(other), DAY_MS) <= 2 * TIME_OF_DAY_TOLERANCE_MS;
  const others = local.filter((moment) => !isNear(moment, local[0]));
  return others.every((moment) => isNear(moment, others[0]));
}

/** The moments on both sides of the two widest gaps in the day. */
function splitByTimeOfDay(local: readonly number[]): readonly [number[], number[]] | undefined {
  const sorted = local.toSorted((a, b) => phaseOf(a) - phaseOf(b));
  const gaps = sorted.map((moment, index) => {
    const gap = phaseOf(sorted[(index + 1) % sorted.length]!) - phaseOf(moment);
    return { index, gap: gap < 0 || index === sorted.length - 1 ? gap + DAY_MS : gap };
  });
  const [first, second] = gaps
    .toSorted((a, b) => b.gap - a.gap)
    .slice(0, 2)
    .map(({ index }) => index)
    .sort((a, b) => a - b);
  if (first === undefined || second === undefined) return undefined;
  const isBetween = (index: number): boolean => index > first && index <= second;
  const between = new Set(sorted.filter((_, index) => isBetween(index)));
  return [local.filter((moment) => between.has(moment)), local.filter((moment) => !between.has(moment))];
}

function phaseOf(moment: number): number {
  return ((moment % DAY_MS) + DAY_MS) % DAY_MS;
}

/** Two times of day with the same minute, each near the given one. */
function atCommonMinute(times: readonly number[]): number[] | undefined {
  const minutes = times.map((time) => time % HOUR_MS);
  const middle = toGrain(meanPhase(minutes, HOUR_MS)) % HOUR_MS;
  const near = times.map((time) => Math.round((time - middle) / HOUR_MS) * HOUR_MS + middle);
  const isNear = near.every((time, index) => Math.abs(time - times[index]!) <= TIME_OF_DAY_TOLERANCE_MS / 2);
  return isNear ? near.map((time) => (time + DAY_MS) % DAY_MS) : undefined;
}

function clockText(time: number): string {
  const { hour, minute } = clockAt(time);
  return `${twoDigits(hour)}:${twoDigits(minute)}`;
}

interface Weekdays {
  readonly field: string;
  readonly words: string;
}

/** The first pattern that has every day with a start, and few days without one. */
function weekdaysOf(days: readonly number[]): Weekdays | undefined {
  const counts = Map.groupBy(days, weekday);
  const seen = [...counts.keys()].sort((a, b) => a - b);
  const isSeenAgain = [...counts.values()].every(({ length }) => length > 1);
  const patterns: readonly (Weekdays & { readonly days: readonly number[] })[] = [
    { days: [0, 1, 2, 3, 4, 5, 6], field: '*', words: 'every day' },
    { days: [1, 2, 3, 4, 5], field: '1-5', words: 'from Monday to Friday' },
    ...(isSeenAgain ? [{ days: seen, field: seen.join(','), words: `every ${seen.map(nameOfDay).join(', ')}` }] : []),
  ];
  return patterns.find((pattern) => {
    if (!seen.every((day) => pattern.days.includes(day))) return false;
    const [first = 0, last = 0] = [days[0], days.at(-1)];
    let named = 0;
    for (let day = first; day <= last; day++) if (pattern.days.includes(weekday(day))) named++;
    return days.length / named >= DAYS_KEPT_MIN;
  });
}

/** Days are counted from 1 January 1970, a Thursday. */
function weekday(day: number): number {
  return (((day + 4) % 7) + 7) % 7;
}

function nameOfDay(day: number): string {
  return ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'][day]!;
}

function evenRhythm(
  moments: readonly number[],
  { periodMinMs, timezones: [timezone = 'UTC'] }: RhythmRules,
  least: number,
): Rhythm | undefined {
  const kept = evenTail(moments);
  if (kept < least) return undefined;
  const even = moments.slice(-kept);
  const periodMs = (even.at(-1)! - even[0]!) / (kept - 1);
  const step = periodMs < periodMinMs * (1 - VARIATION_MAX) ? undefined : nearestStep(periodMs);
  if (!step) return undefined;
  const local = localTimes(even, timezone);
  const phase = meanPhase(local, step.ms);
  // What is done once a day or once a week at any hour has no time at which a schedule could do it.
  const isAtAnyHour = local.some((moment) => phaseDistance(moment, phase, step.ms) > TIME_OF_DAY_TOLERANCE_MS);
  if (step.ms >= DAY_MS && isAtAnyHour) return undefined;
  const cron = step.cron(step.ms < HOUR_MS ? phase : toGrain(phase) % step.ms);
  return { cron, timezone, words: `about every ${inWords(periodMs)}`, kept };
}

/** The largest number of latest moments whose gaps vary little. */
function evenTail(moments: readonly number[]): number {
  let [best, sum, squares] = [0, 0, 0];
  for (let gaps = 1; gaps < moments.length; gaps++) {
    const gap = moments.at(-gaps)! - moments.at(-gaps - 1)!;
    sum += gap;
    squares += gap * gap;
    const mean = sum / gaps;
    const deviation = Math.sqrt(Math.max(0, squares / gaps - mean * mean));
    if (gaps + 1 >= MOMENTS_MIN && mean > 0 && deviation <= VARIATION_MAX * mean) best = gaps + 1;
  }
  return best;
}

/** A period that cron can express, and the expression for a phase within it. */
interface Step {
  readonly ms: number;
  cron(phase: number): string;
}

const SIXTIETHS = [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30];
const STEPS: readonly Step[] = [
  ...SIXTIETHS.map((count) => ({ ms: count * SECOND_MS, cron: () => `${series(0, count, 59)} * * * * *` })),
  ...SIXTIETHS.map((count) => ({
    ms: count * MINUTE_MS,
    cron: (phase: number) => `${series(Math.floor(phase / MINUTE_MS), count, 59)} * * * *`,
  })),
  ...[1, 2, 3, 4, 6, 8, 12].map((count) => ({
    ms: count * HOUR_MS,
    cron: (phase: number) => {
      const { hour, minute } = clockAt(phase);
      return `${minute} ${series(hour % count, count, 23)} * * *`;
    },
  })),
  {
    ms: DAY_MS,
    cron: (phase) => {
      const { hour, minute } = clockAt(phase);
      return `${minute} ${hour} * * *`;
    },
  },
  {
    ms: WEEK_MS,
    cron: (phase) => {
      const { hour, minute } = clockAt(phase);
      return `${minute} ${hour} * * ${weekday(Math.floor(phase / DAY_MS))}`;
    },
  },
];

function series(start: number, step: number, last: number): string {
  if (step === 1) return '*';
  return start === 0 ? `*/${step}` : `${start}-${last}/${step}`;
}

function nearestStep(periodMs: number): Step | undefined {
  const off = ({ ms }: Step): number => Math.abs(Math.log(ms / periodMs));
  const nearest = STEPS.reduce((best, step) => (off(step) < off(best) ? step : best));
  const isNear = periodMs < MINUTE_MS || Math.abs(nearest.ms / periodMs - 1) <= PERIOD_OFF_MAX;
  return isNear ? nearest : undefined;
}

/** The local times of moments, as if they were UTC. */
function localTimes(moments: readonly number[], timezone: string): readonly number[] {
  if (timezone === 'UTC') return moments;
  const offset = offsetsIn(timezone);
  return moments.map((moment) => moment + offset(moment));
}

/** The circular mean of the phases of moments: the end of a period is next to its beginning. */
function meanPhase(moments: readonly number[], periodMs: number): number {
  const angles = moments.map((moment) => ((moment % periodMs) / periodMs) * 2 * Math.PI);
  const sine = angles.reduce((sum, angle) => sum + Math.sin(angle), 0);
  const cosine = angles.reduce((sum, angle) => sum + Math.cos(angle), 0);
  const phase = (Math.atan2(sine, cosine) / (2 * Math.PI)) * periodMs;
  return phase < 0 ? phase + periodMs : phase;
}

function phaseDistance(moment: number, phase: number, periodMs: number): number {
  const off = Math.abs((moment % periodMs) - phase);
  return Math.min(off, periodMs - off);
}

/** Rounds to the times that people plan with. */
function toGrain(time: number): number {
  return Math.round(time / GRAIN_MS) * GRAIN_MS;
}

function clockAt(time: number): { readonly hour: number; readonly minute: number } {
  return { hour: Math.floor((time % DAY_MS) / HOUR_MS), minute: Math.floor((time % HOUR_MS) / MINUTE_MS) };
}

function twoDigits(number: number): string {
  return String(number).padStart(2, '0');
}

function inWords(periodMs: number): string {
  const units = [
    [WEEK_MS, 'week'],
    [DAY_MS, 'day'],
    [HOUR_MS, 'hour'],
    [MINUTE_MS, 'minute'],
  ] as const;
  const [ms, name] = units.find(([unit]) => periodMs >= unit * 0.95) ?? [SECOND_MS, 'second'];
  const count = Number((periodMs / ms).toFixed(1));
  return count === 1 ? name : `${count} ${name}s`;
}
