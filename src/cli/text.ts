import { defined } from '../protocol/format/json.ts';

const COLOURS = { red: 31, green: 32, yellow: 33, blue: 34, grey: 90, bold: 1 } as const;
export type Colour = keyof typeof COLOURS;
export type Paint = (colour: Colour, text: string) => string;

export const plain: Paint = (_colour, text) => text;
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

export function paintStatus(paint: Paint, status: string): string {
  const colour = STATUS_COLOURS[status];
  return colour ? paint(colour, status) : status;
}

/** Text that others wrote does not get to move the cursor. */
export function harmless(text: string): string {
  return text.replace(/\p{Cc}/gu, '?');
}

/** Columns of the same width, headed by their names. */
export function table(heads: readonly string[], rows: readonly (readonly unknown[])[]): string[] {
  return columns([heads, ...rows]);
}

/** Columns of the same width. */
export function columns(lines: readonly (readonly unknown[])[]): string[] {
  const rows = lines.map((row) => row.map((cell) => harmless(String(cell ?? ''))));
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  );
}

/** Members of an object that are there, one to a line. */
export function facts(members: Readonly<Record<string, unknown>>): string[] {
  return columns(
    Object.entries(defined(members)).map(([name, value]) => [
      name,
      typeof value === 'object' ? JSON.stringify(value) : value,
    ]),
  );
}

/** So many milliseconds, as people say it. */
export function duration(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 1) return `${Math.max(0, Math.round(ms))} ms`;
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}
