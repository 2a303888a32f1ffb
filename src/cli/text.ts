import { defined, isObject } from '../protocol/format/json.ts';

const COLOURS = { red: 31, green: 32, yellow: 33, blue: 34, grey: 90, bold: 1 } as const;
/** A colour or style that the terminal output uses. */
export type Colour = keyof typeof COLOURS;
/** Applies a colour to a text, or returns it unchanged when colours are off. */
export type Paint = (colour: Colour, text: string) => string;

/** Leaves text uncoloured, for output that is not a terminal. */
export const plain: Paint = (_colour, text) => text;
/** Colours text with ANSI escape sequences. */
export const coloured: Paint = (colour, text) => `\x1b[${COLOURS[colour]}m${text}\x1b[0m`;

const STATUS_COLOURS: Readonly<Record<string, Colour>> = {
  completed: 'green',
  delivered: 'green',
  success: 'green',
  failed: 'red',
  dead: 'red',
  denied: 'red',
  cancelled: 'grey',
  running: 'blue',
  'waiting-approval': 'yellow',
  'waiting-input': 'yellow',
  'waiting-external': 'yellow',
  paused: 'yellow',
};

/** Colours a run, delivery or audit status by its meaning. */
export function paintStatus(paint: Paint, status: string): string {
  const colour = STATUS_COLOURS[status];
  return colour ? paint(colour, status) : status;
}

/** Replaces control characters, so that text from others cannot move the cursor or change the terminal. */
export function sanitize(text: string): string {
  return text.replace(/\p{Cc}/gu, '?');
}

/** Formats an error as its message and code. */
export function errorText(error: unknown): string {
  return isObject(error) ? sanitize(`${error.message} (${error.code})`) : '';
}

const SHORT_MAX = 80;

/** The beginning of a text, or of a value as JSON. */
export function shortText(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing');
  return text.length > SHORT_MAX ? `${text.slice(0, SHORT_MAX)}…` : text;
}

/** Formats rows as aligned columns under a header; without any row, says what to do instead, if that is given. */
export function table(heads: readonly string[], rows: readonly (readonly unknown[])[], whenEmpty?: string): string[] {
  return rows.length === 0 && whenEmpty !== undefined ? [whenEmpty] : columns([heads, ...rows]);
}

/** Formats rows as aligned columns. */
export function columns(lines: readonly (readonly unknown[])[]): string[] {
  const rows = lines.map((row) => row.map((cell) => sanitize(String(cell ?? ''))));
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  );
}

/** Formats the defined properties of an object, one per line. */
export function propertyLines(properties: Readonly<Record<string, unknown>>): string[] {
  return columns(
    Object.entries(defined(properties)).map(([name, value]) => [
      name,
      typeof value === 'object' ? JSON.stringify(value) : value,
    ]),
  );
}

/** Formats milliseconds in the largest fitting unit, for example `2 min`. */
export function formatDuration(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 1) return `${Math.max(0, Math.round(ms))} ms`;
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

const UNITS: readonly [ms: number, name: string][] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
];

/** Formats milliseconds in the two largest fitting units, for example `1 h 30 min`, where one would say too little. */
export function formatSpan(ms: number): string {
  const first = UNITS.findIndex(([unit]) => ms >= unit);
  if (first < 0) return formatDuration(ms);
  const parts = UNITS.slice(first, first + 2).map(([unit, name], index) => {
    const left = index === 0 ? ms : ms % UNITS[first]![0];
    return [Math.floor(left / unit), name] as const;
  });
  return parts
    .filter(([count]) => count > 0)
    .map(([count, name]) => `${count} ${name}`)
    .join(' ');
}

/** A number with its noun: `1 run`, `2 runs`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}
