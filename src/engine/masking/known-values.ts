import { isObject } from '../../protocol/format/json.ts';
import { REDACTED } from './mask.ts';
import { TextHashes } from './text-hashes.ts';

/** Shorter texts are masked only where they are a whole value: inside other texts they would match ordinary words. */
const PART_LENGTH_MIN = 6;
/** Shorter texts are not tracked at all. */
const WHOLE_LENGTH_MIN = 4;
/** A longer text is found by its beginning, which is masked to its end. */
const TEXT_LENGTH_MAX = 100_000;
/** How many values a run tracks; a list of more is masked by its place alone. */
const VALUES_MAX = 10_000;
const DEPTH_MAX = 256;

/** Values that begin alike. */
interface Parts {
  /** By their hash, which finds candidates at a place without reading them. */
  readonly texts: Map<number, string[]>;
  /** The different lengths of the texts, longest first. */
  readonly lengths: number[];
}

/** How many lengths are tried at one place; beyond that everything that begins alike is masked to the end. */
const LENGTHS_MAX = 64;

function addTo({ texts, lengths }: Parts, text: string): void {
  if (lengths.length > LENGTHS_MAX) return;
  const hash = new TextHashes(text).of(0, text.length);
  const alike = texts.get(hash);
  if (alike) alike.push(text);
  else texts.set(hash, [text]);
  if (lengths.includes(text.length)) return;
  lengths.push(text.length);
  lengths.sort((a, b) => b - a);
}

/** How often values with the hash of a place may be compared in vain, before a text is taken for one made to cause that. */
const MISSES_MAX = 100;

/** Finds values in one text. */
class Search {
  readonly #text: string;
  readonly #hashes: TextHashes;
  #misses = 0;

  constructor(text: string) {
    this.#text = text;
    this.#hashes = new TextHashes(text);
  }

  /** The length of the longest value at a place. */
  lengthAt(index: number, { texts, lengths }: Parts): number | undefined {
    const rest = this.#text.length - index;
    if (lengths.length > LENGTHS_MAX) return rest;
    const found = lengths.find((length) => {
      if (length > rest) return false;
      const values = texts.get(this.#hashes.of(index, length)) ?? [];
      return values.some((value) => this.#isAt(index, value));
    });
    return this.#misses > MISSES_MAX ? rest : found;
  }

  #isAt(index: number, value: string): boolean {
    const isAt = this.#text.startsWith(value, index);
    if (!isAt) this.#misses++;
    return isAt;
  }
}

/**
 * The sensitive values that a run has seen, so that they are masked wherever they turn up again: in an error, a prompt,
 * a comment or an output of another node. Masking takes time in proportion to the text, however many values there are.
 */
export class KnownValues {
  readonly #wholes = new Set<string>();
  /** Values that may be part of a text, by their first characters. */
  readonly #parts = new Map<string, Parts>();
  readonly #firsts = new Set<number>();

  /** Tracks every text and long number in a value. */
  learn(value: unknown, depth = 0): void {
    if (typeof value === 'string') this.#add(value);
    else if (typeof value === 'number') this.#add(String(value), PART_LENGTH_MIN);
    else if (typeof value === 'object' && value !== null && depth < DEPTH_MAX) {
      for (const item of Object.values(value)) this.learn(item, depth + 1);
    }
  }

  /** Tracks what another run tracks. */
  learnFrom(other: KnownValues): void {
    for (const value of other.#wholes) this.#add(value);
  }

  /** Tracks what differs between a value and the form of it that readers see. */
  learnMasked(value: unknown, shown: unknown, depth = 0): void {
    if (Object.is(value, shown) || depth === DEPTH_MAX) return;
    if (typeof value !== 'object' || value === null || typeof shown !== 'object' || shown === null) {
      this.learn(value);
      return;
    }
    const others = shown as Record<string, unknown>;
    for (const [key, item] of Object.entries(value)) this.learnMasked(item, others[key], depth + 1);
  }

  /** The value with everything masked that is tracked; the same object if there is nothing. */
  mask<T>(value: T): T {
    return this.#wholes.size === 0 ? value : (this.#maskPart(value, 0) as T);
  }

  /** Whether something in a value is tracked. */
  holds(value: unknown): boolean {
    return this.mask(value) !== value;
  }

  #add(value: string, lengthMin = WHOLE_LENGTH_MIN): void {
    const text = value.slice(0, TEXT_LENGTH_MAX);
    if (text.length < lengthMin || this.#wholes.has(text) || this.#wholes.size >= VALUES_MAX) return;
    if (REDACTED.includes(text)) return;
    this.#wholes.add(text);
    for (const spelling of new Set([text, JSON.stringify(text).slice(1, -1)])) {
      if (spelling.length < PART_LENGTH_MIN) continue;
      const beginning = spelling.slice(0, PART_LENGTH_MIN);
      const parts = this.#parts.get(beginning) ?? { lengths: [], texts: new Map() };
      this.#parts.set(beginning, parts);
      addTo(parts, spelling);
      this.#firsts.add(spelling.charCodeAt(0));
    }
  }

  #maskPart(value: unknown, depth: number): unknown {
    if (typeof value === 'string') return this.#maskText(value);
    if (typeof value === 'number') return this.#wholes.has(String(value)) ? REDACTED : value;
    if (typeof value !== 'object' || value === null || depth === DEPTH_MAX) return value;
    if (Array.isArray(value)) {
      const items = value.map((item) => this.#maskPart(item, depth + 1));
      return items.some((item, index) => !Object.is(item, value[index])) ? items : value;
    }
    const entries = Object.entries(value).map(([key, item]) => [
      this.#maskText(key),
      this.#maskPart(item, depth + 1),
      item,
      key,
    ]);
    const isChanged = entries.some(([name, shown, item, key]) => name !== key || !Object.is(shown, item));
    return isChanged && isObject(value) ? Object.fromEntries(entries.map(([name, shown]) => [name, shown])) : value;
  }

  #maskText(text: string): string {
    if (this.#wholes.has(text)) return REDACTED;
    let masked = '';
    let from = 0;
    let search: Search | undefined;
    for (let index = 0; index + PART_LENGTH_MIN <= text.length; index++) {
      if (!this.#firsts.has(text.charCodeAt(index))) continue;
      const parts = this.#parts.get(text.slice(index, index + PART_LENGTH_MIN));
      if (!parts) continue;
      search ??= new Search(text);
      const length = search.lengthAt(index, parts);
      if (length === undefined) continue;
      masked += text.slice(from, index) + REDACTED;
      from = index + length;
      index = from - 1;
    }
    return from === 0 ? text : masked + text.slice(from);
  }
}
