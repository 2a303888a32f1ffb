import { canonicalJson, isObject } from '../../../protocol/format/json.ts';

/**
 * A MinHash sketch of an artifact: the smallest hashes of its shingles, sorted. The similarity of two artifacts is the
 * Jaccard index of their shingles. It is exact for artifacts with fewer shingles than a sketch holds, which are nearly
 * all; for larger ones it is estimated from the smallest hashes of both together.
 */
export type Sketch = Uint32Array;

const SKETCH_MAX = 1_024;
const WORDS_PER_SHINGLE = 3;

/** The sketch of some content. */
export function sketchOf(content: unknown): Sketch {
  const hashes = [...new Set([...shinglesOf(content, '')].map(hash))].sort((a, b) => a - b);
  return Uint32Array.from(hashes.slice(0, SKETCH_MAX));
}

/** From 0 (nothing in common) to 1. */
export function similarity(a: Sketch, b: Sketch): number {
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

/** The members of a structure with their paths; texts give their words, a few in a row at a time. */
function* shinglesOf(value: unknown, path: string): Generator<string> {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      yield* shinglesOf(item, `${path}[]`);
      // The order of items is part of a structure, too.
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

/** FNV-1a, mixed at the end so that its smallest values are a fair sample. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    state = Math.imul(state ^ text.charCodeAt(index), 0x01000193);
  }
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return (state ^ (state >>> 16)) >>> 0;
}
