import { diff } from 'node:util';

const CONTEXT_LINES = 3;

/** The lines in which two documents differ, with their surroundings; empty if they are equal. */
export function differenceOf(before: unknown, after: unknown): string[] {
  const [old, now] = [linesOf(before), linesOf(after)];
  const start = commonLength(old, now);
  if (start === old.length && start === now.length) return [];
  const end = commonLength(old.slice(start).reverse(), now.slice(start).reverse());
  const from = Math.max(0, start - CONTEXT_LINES);
  const upTo = (lines: readonly string[]): number => Math.min(lines.length, lines.length - end + CONTEXT_LINES);
  const entries = diff(old.slice(from, upTo(old)), now.slice(from, upTo(now))).map(([operation, line]) => ({
    operation,
    line,
  }));
  return withoutDistantLines(entries, from);
}

interface Entry {
  readonly operation: number;
  readonly line: string;
}

/** The operations of `util.diff`: 1 is a line of the first argument only, -1 a line of the second only. */
const SIGNS: Record<string, string> = { '1': '-', '0': ' ', '-1': '+' };

function withoutDistantLines(entries: readonly Entry[], from: number): string[] {
  const changed = entries.flatMap(({ operation }, index) => (operation === 0 ? [] : [index]));
  const lines: string[] = [];
  let last = -1;
  let oldLine = from;
  for (const [index, { operation, line }] of entries.entries()) {
    const isNear = changed.some((at) => Math.abs(at - index) <= CONTEXT_LINES);
    if (isNear && last !== index - 1) lines.push(`@@ line ${oldLine + 1} @@`);
    if (isNear) lines.push(`${SIGNS[String(operation)]}${line}`);
    if (isNear) last = index;
    if (operation !== -1) oldLine++;
  }
  return lines;
}

function linesOf(document: unknown): string[] {
  if (document === undefined) return [];
  return JSON.stringify(document, null, 2).split('\n');
}

function commonLength(one: readonly string[], other: readonly string[]): number {
  const most = Math.min(one.length, other.length);
  for (let index = 0; index < most; index++) if (one[index] !== other[index]) return index;
  return most;
}
