import { isObject } from '../protocol/format/json.ts';
import { sanitize } from './text.ts';

/** More lines of one value would push the rest of a report off the screen. */
const LINES_MAX = 60;
const COMPACT_MAX = 72;

/** Formats a value for people: the members of an object by name, texts as they are, other values as JSON. */
export function valueLines(value: unknown): string[] {
  const lines = isObject(value)
    ? Object.entries(value).flatMap(([name, member]) => labelled(sanitize(name), textLines(member)))
    : textLines(value);
  if (lines.length <= LINES_MAX) return lines;
  return [...lines.slice(0, LINES_MAX), `… ${lines.length - LINES_MAX} more lines; --json prints all`];
}

function textLines(value: unknown): string[] {
  if (typeof value === 'string') return value.split('\n').map(sanitize);
  const compact = JSON.stringify(value) ?? '';
  return (compact.length <= COMPACT_MAX ? compact : JSON.stringify(value, null, 2)).split('\n').map(sanitize);
}

/** Puts a value of one line behind its name, and a longer one under it. */
function labelled(name: string, lines: readonly string[]): string[] {
  return lines.length === 1 ? [`${name}: ${lines[0]}`] : [`${name}:`, ...lines.map((line) => `  ${line}`)];
}

/** Wraps two texts into columns beside each other. */
export function sideBySide(left: string, right: string, width: number): string[] {
  const half = Math.max(10, Math.floor((width - 3) / 2));
  const [a, b] = [wrap(left, half), wrap(right, half)];
  return Array.from({ length: Math.max(a.length, b.length) }, (_, row) =>
    `${(a[row] ?? '').padEnd(half)} | ${b[row] ?? ''}`.trimEnd(),
  );
}

function wrap(text: string, width: number): string[] {
  return text.split('\n').flatMap((line) => sanitize(line).match(new RegExp(`.{1,${width}}`, 'gu')) ?? ['']);
}
