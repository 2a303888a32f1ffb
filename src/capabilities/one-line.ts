import { isObject } from '../protocol/format/json.ts';

/** Lists have room for so much of a value. */
const CHARS_MAX = 160;

/** The beginning of a value as one line of text, for lists; undefined if it says nothing. */
export function oneLine(value: unknown): string | undefined {
  const line = textOf(unwrapped(value)).replaceAll(/\s+/g, ' ').trim();
  return line === '' ? undefined : shortened(line);
}

/** A value without the levels that have one member: the only node with outputs, and its only output. */
function unwrapped(value: unknown): unknown {
  if (!isObject(value)) return value;
  const [only, ...others] = Object.values(value);
  return others.length === 0 ? unwrapped(only) : value;
}

function textOf(value: unknown): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return value;
  if (!isObject(value)) return JSON.stringify(value);
  return Object.entries(value)
    .map(([name, member]) => `${name}: ${typeof member === 'string' ? member : JSON.stringify(member)}`)
    .join(', ');
}

function shortened(line: string): string {
  const chars = [...line];
  return chars.length <= CHARS_MAX ? line : `${chars.slice(0, CHARS_MAX - 1).join('')}…`;
}
