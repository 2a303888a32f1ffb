import { indentJson } from '../../../protocol/format/json-text.ts';

/** Pairs of lines that are compared at most; texts that differ in more are shown as two. */
const PAIRS_MAX = 250_000;

/**
 * What one JSON text has that another has not, a line for each member: `+` and `-` in front of what came and went, a space
 * in front of what stayed. Numbers and escapes stand as they were written, so that two spellings of a value differ.
 */
export function diffOfTexts(before: string | undefined, after: string): string {
  const [old, now] = [before === undefined ? [] : linesOf(before), linesOf(after)];
  const head = commonStart(old, now);
  const tail = commonStart(old.slice(head).reverse(), now.slice(head).reverse());
  const gone = old.slice(head, old.length - tail);
  const come = now.slice(head, now.length - tail);
  return [
    ...now.slice(0, head).map(kept),
    ...(gone.length * come.length > PAIRS_MAX ? [...gone.map(removed), ...come.map(added)] : between(gone, come)),
    ...now.slice(now.length - tail).map(kept),
  ].join('\n');
}

const kept = (line: string): string => ` ${line}`;
const removed = (line: string): string => `-${line}`;
const added = (line: string): string => `+${line}`;

function linesOf(text: string): string[] {
  return indentJson(text).split('\n');
}

function commonStart(one: readonly string[], other: readonly string[]): number {
  const end = one.findIndex((line, index) => line !== other[index]);
  return Math.min(end < 0 ? one.length : end, other.length);
}

/** The longest lines in common, from the end: `shared[i][j]` of what follows line i of one and line j of the other. */
function between(gone: readonly string[], come: readonly string[]): string[] {
  const width = come.length + 1;
  const shared = new Uint32Array((gone.length + 1) * width);
  for (let i = gone.length - 1; i >= 0; i--) {
    for (let j = come.length - 1; j >= 0; j--) {
      const place = i * width + j;
      shared[place] =
        gone[i] === come[j] ? shared[place + width + 1]! + 1 : Math.max(shared[place + width]!, shared[place + 1]!);
    }
  }
  const lines: string[] = [];
  let [i, j] = [0, 0];
  while (i < gone.length && j < come.length) {
    const place = i * width + j;
    if (gone[i] === come[j]) {
      lines.push(kept(gone[i++]!));
      j++;
    } else if (shared[place + width]! >= shared[place + 1]!) lines.push(removed(gone[i++]!));
    else lines.push(added(come[j++]!));
  }
  return [...lines, ...gone.slice(i).map(removed), ...come.slice(j).map(added)];
}
