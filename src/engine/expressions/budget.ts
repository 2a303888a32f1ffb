import { isObject, type JsonObject } from '../../protocol/format/json.ts';
import type { Allowance } from './allowance.ts';
import { ExpressionError } from './expression-error.ts';
import { compilePattern, PATTERN_SIZE_MAX, type Pattern } from './pattern.ts';

/**
 * Limit on the work of one evaluation. A loop iteration costs one step, other parts of the expression a fraction, long
 * texts and lists more.
 */
const STEPS_MAX = 100_000;
const PARTS_PER_STEP = 5;
/** Characters of a text that are read for a step. */
export const CHARS_PER_STEP = 40;
/** Items of a list that are read for a step. */
export const ITEMS_PER_STEP = 8;
/** A search may compare every character of the text with every character that is searched for. */
const COMPARISONS_PER_STEP = 500;
/** A longer text is no number, duration or time, and the library takes long to find that out. */
const CONVERTED_MAX = 100;
/** Compiling a pattern, for each of its instructions. */
const STEPS_PER_INSTRUCTION = 50;

/** The steps that the current evaluation may still use. */
export class Budget {
  #left = 0;
  #allowance: Allowance | undefined;
  /** The pattern that each `matches` used last in this evaluation, so that one in a loop is compiled once. */
  readonly #patterns = new Map<object, { readonly source: string; readonly pattern: Pattern }>();

  /** The length of the first text of each search of which the second is not known yet. */
  readonly #searches = new Map<object, number>();

  /** Begins an evaluation, which also spends from what it shares with others. */
  begin(allowance: Allowance | undefined): void {
    allowance?.check();
    this.#allowance = allowance;
    this.refill();
  }

  refill(): void {
    this.#left = STEPS_MAX;
    this.#patterns.clear();
    this.#searches.clear();
  }

  /** Compiles a pattern and charges for it. What it costs does not depend on earlier evaluations. */
  patternFor(node: object, source: string): Pattern {
    const last = this.#patterns.get(node);
    if (last?.source === source) return last.pattern;
    const pattern = compiled(source);
    // A loop goes on after an error, so a pattern that is not valid costs as much as the largest one.
    this.spend((pattern?.cost ?? PATTERN_SIZE_MAX) * STEPS_PER_INSTRUCTION);
    if (!pattern) throw new ExpressionError('the pattern is not valid');
    this.#patterns.set(node, { source, pattern });
    return pattern;
  }

  spend(steps: number): void {
    this.#left -= steps;
    this.#allowance?.spend(steps);
    if (this.#left < 0) throw new ExpressionError(`the expression takes more than ${STEPS_MAX} steps`);
  }

  /** Charges for evaluating a part of the expression to this value. */
  spendOn(value: unknown): void {
    const length = typeof value === 'string' || value instanceof Uint8Array ? value.length : 0;
    this.spend(length / CHARS_PER_STEP + 1 / PARTS_PER_STEP);
  }

  /** To be called before a search evaluates its texts: one that failed halfway has left the length of its first. */
  beginSearch(search: object): void {
    this.#searches.delete(search);
  }

  /** Charges for a search once the lengths of both texts are known, in whatever order the library evaluates them. */
  spendOnSearch(search: object, length: number): void {
    const other = this.#searches.get(search);
    if (other === undefined) this.#searches.set(search, length);
    else this.spend((length * other) / COMPARISONS_PER_STEP);
  }

  /** Refuses to convert a text that is too long for what it is converted to. */
  checkConverted(value: unknown): void {
    if (typeof value === 'string' && value.length > CONVERTED_MAX)
      throw new ExpressionError(`a text of more than ${CONVERTED_MAX} characters is no number, duration or time`);
  }

  /** Charges for counting the characters of a text or the members of an object, which takes longer than reading it. */
  spendOnCounting(value: unknown): void {
    if (typeof value === 'string') this.spend((2 * value.length) / CHARS_PER_STEP);
    else if (isObject(value) && !(value instanceof Map)) this.spend(Object.keys(value).length);
  }

  /** Charges for going through a list once, as creating one does. */
  spendOnItems(value: unknown): void {
    if (Array.isArray(value)) this.spend(value.length / ITEMS_PER_STEP);
    else if (value instanceof Map) this.spend(value.size / ITEMS_PER_STEP);
  }

  /** Charges for a deep traversal of a value, which comparison needs. */
  spendOnAll(value: unknown): void {
    this.spendOn(value);
    if (value instanceof Map) for (const item of value.values()) this.spendOnAll(item);
    else if (Array.isArray(value)) for (const item of value) this.spendOnAll(item);
    else if (isObject(value)) this.#spendOnMembers(value);
  }

  /** Members of an object cost a step each: listing them takes far longer than going through a list. */
  #spendOnMembers(value: JsonObject): void {
    for (const key in value) {
      this.spend(1);
      this.spendOnAll(value[key]);
    }
  }
}

function compiled(source: string): Pattern | undefined {
  try {
    return compilePattern(source);
  } catch {
    return undefined;
  }
}
