const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'narrow' });
const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});
const STEPS = [
  ['second', 1_000, 60_000],
  ['minute', 60_000, 3_600_000],
  ['hour', 3_600_000, 86_400_000],
  ['day', 86_400_000, Number.POSITIVE_INFINITY],
] as const;

/** How long ago, in the reader's language. */
export function ago(iso: string, now = Date.now()): string {
  const past = now - Date.parse(iso);
  const [unit, ms] = STEPS.find(([, , below]) => Math.abs(past) < below) ?? STEPS[3];
  return RELATIVE.format(-Math.round(past / ms), unit);
}

/** The moment itself, in the reader's zone. */
export function exactly(iso: string): string {
  return EXACT.format(Date.parse(iso));
}

/** The time of day, to the millisecond: for logs. */
export function clockTime(iso: string): string {
  return `${CLOCK.format(Date.parse(iso))}.${iso.slice(20, 23).padEnd(3, '0')}`;
}

/** How long something took. */
export function span(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} m ${Math.floor((ms % 60_000) / 1_000)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} m` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A moment as fields for times want it: without a zone, so in the reader's. */
export function localTime(iso: string): string {
  const time = new Date(iso);
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** The moment that such a field says. */
export function momentOf(local: string): string {
  return new Date(local).toISOString();
}
