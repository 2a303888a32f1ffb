import { canonicalJson, isObject } from '../../../protocol/format/json.ts';

/**
 * What an artifact consists of, as numbers: the smallest hashes of its shingles, in order. Two artifacts are as alike as
 * the share of shingles that they have in common. Of artifacts with fewer shingles than a sketch holds, which is nearly
 * all, that share is exact; of larger ones it is estimated from the smallest hashes of both together.
 */
export type Sketch = Uint32Array;

const SKETCH_MAX = 1_024;
const WORDS_PER_SHINGLE = 3;

export function sketchOf(essence: unknown): Sketch {
  const hashes = [...new Set([...shinglesOf(essence, '')].map(hash))].sort((a, b) => a - b);
  return Uint32Array.from(hashes.slice(0, SKETCH_MAX));
}

/** From 0, nothing in common, to 1. */
export function likeness(a: Sketch, b: Sketch): number {
  let [left, right, both, either] = [0, 0, 0, 0];
  const limit = Math.max(a.length, b.length) < SKETCH_MAX ? Number.POSITIVE_INFINITY : SKETCH_MAX;
  while (either < limit && (left < a.length || right < b.length)) {
    const [one = Number.POSITIVE_INFINITY, other = Number.POSITIVE_INFINITY] = [a[left], b[right]];
    either++;
    if (one === other) both++;
    if (one <= other) left++;
    if (other <= one) right++;
  }
  return either === 0 ? 1 : both / either;
}

/** The members of a structure with where they stand, and of its texts the words, a few in a row at a time. */
function* shinglesOf(value: unknown, path: string): Generator<string> {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      yield* shinglesOf(item, `${path}[]`);
      // What follows what is part of a structure, too.
      const before = value[index - 1];
      if (before !== undefined) yield `${path}[]>${canonicalJson(before)}>${canonicalJson(item)}`;
    }
  } else if (isObject(value)) {
    for (const [key, member] of Object.entries(value)) yield* shinglesOf(member, `${path}.${key}`);
  } else if (typeof value === 'string') {
    yield* textShingles(value, path);
  } else {
    yield `${path}=${JSON.stringify(value ?? null)}`;
  }
}

function* textShingles(text: string, path: string): Generator<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}_.:{}-]+/gu) ?? [];
  if (words.length <= WORDS_PER_SHINGLE) {
    yield `${path}=${words.join(' ')}`;
    return;
  }
  for (let first = 0; first + WORDS_PER_SHINGLE <= words.length; first++) {
    yield `${path}~${words.slice(first, first + WORDS_PER_SHINGLE).join(' ')}`;
  }
}

/** FNV-1a, stirred at the end so that its smallest values are a fair sample. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    state = Math.imul(state ^ text.charCodeAt(index), 0x01000193);
  }
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return (state ^ (state >>> 16)) >>> 0;
}
