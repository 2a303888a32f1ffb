import type { RunError } from '../../protocol/errors.ts';
import { isObject } from '../../protocol/format/json.ts';

/** Parts of a value nested deeper than this are not measured: redaction replaces them before they are stored. */
const DEPTH_MAX = 256;
/** What a scalar that is not a text takes at most, with its comma. */
const SCALAR_CHARACTERS = 8;

/** Thrown when something grows beyond its limit: the attempt fails, and what has grown so far is dropped. */
export class OutputLimitExceeded extends Error {
  override readonly name = 'OutputLimitExceeded';
  readonly error: RunError;

  constructor(what: string, max: number) {
    const message = `${what} would have more than ${max} characters.`;
    super(message);
    this.error = { code: 'output_limit_exceeded', message, details: { limit: max }, retryable: false };
  }
}

/**
 * Counts the characters of something that grows, and throws before it is too large. Whoever builds a text or a list
 * takes from the budget before each piece, so that memory stays in proportion to the limit, whatever the inputs are.
 */
export class OutputBudget {
  readonly #what: string;
  readonly #max: number;
  #left: number;

  constructor(what: string, max: number, used = 0) {
    this.#what = what;
    this.#max = max;
    this.#left = max - used;
  }

  /** Takes a number of characters. */
  take(characters: number): void {
    this.#left -= characters;
    if (this.#left < 0) throw new OutputLimitExceeded(this.#what, this.#max);
  }

  /**
   * Takes what a value has as JSON text, about, and stops where that is too much. A part that occurs twice counts twice,
   * as it does in the text.
   */
  takeJson(value: unknown, indent = 0, depth = 0): void {
    if (depth === DEPTH_MAX || typeof value !== 'object' || value === null) {
      this.take(typeof value === 'string' ? value.length + 2 : SCALAR_CHARACTERS);
      return;
    }
    const line = indent === 0 ? 1 : indent * (depth + 1) + 2;
    this.take(indent === 0 ? 2 : indent * depth + 3);
    if (Array.isArray(value)) {
      for (const item of value) {
        this.take(line);
        this.takeJson(item, indent, depth + 1);
      }
    } else if (isObject(value)) {
      for (const key of Object.keys(value)) {
        this.take(line + key.length + 3);
        this.takeJson(value[key], indent, depth + 1);
      }
    }
  }

  /** The number of characters taken so far. */
  get taken(): number {
    return this.#max - this.#left;
  }
}
