import { RE2JS } from 're2js';
import { ExpressionError } from './expression-error.ts';

/** A regular expression from an untrusted source. Matching takes time linear in the text, whatever the pattern. */
export interface Pattern {
  /** The instructions of the compiled program. Matching takes up to this many operations for each character. */
  readonly size: number;
  /** About what compiling took, in instructions. */
  readonly cost: number;
  test(text: string): boolean;
}

/** The largest program of a pattern. A larger one takes tens of milliseconds to compile. */
export const PATTERN_SIZE_MAX = 1_000;
const PATTERN_CHARS_MAX = 2_000;
/** Operations of one match on the main thread; about 50 ms in the worst case. */
const OPERATIONS_MAX = 1_000_000;
const TOO_LONG = 'the text is too long for the pattern';

/** Compiles an RE2 pattern; throws on anything RE2 lacks, such as back-references and lookaround. */
export function compilePattern(source: string): Pattern {
  if (source.length > PATTERN_CHARS_MAX) {
    throw new Error(`the pattern is longer than ${PATTERN_CHARS_MAX} characters`);
  }
  const cost = patternCost(source);
  if (cost > 2 * PATTERN_SIZE_MAX) throw new Error('the pattern is too complex');
  const compiled = RE2JS.compile(source);
  const size = compiled.programSize();
  if (size > PATTERN_SIZE_MAX) throw new Error('the pattern is too complex');
  return { size, cost: Math.max(size, cost), test: (text) => compiled.matcher(text).find() };
}

/** Matches a text on the main thread; throws ExpressionError if the text is too long for the pattern. */
export function matchBounded(pattern: Pattern, text: string): boolean {
  if (pattern.size * text.length > OPERATIONS_MAX) throw new ExpressionError(TOO_LONG);
  return pattern.test(text);
}

/** Compiling takes as long as so many operations, for each instruction. */
const OPERATIONS_PER_INSTRUCTION = 400;

/**
 * Matches texts on the main thread, as one step of a run does: all of them together take a bounded time. What a match
 * costs does not depend on earlier steps.
 */
export class BoundedMatcher {
  readonly #compile: (source: string) => Pattern;
  #left = OPERATIONS_MAX;
  #patterns = 0;

  /** `compile` may keep the patterns that it has compiled. */
  constructor(compile: (source: string) => Pattern = compilePattern) {
    this.#compile = compile;
  }

  /** Throws if the pattern is not valid, and if this is too much work. */
  test(source: string, text: string): boolean {
    const pattern = this.#compile(source);
    if (this.#patterns++ > 0) this.#left -= pattern.cost * OPERATIONS_PER_INSTRUCTION;
    this.#left -= pattern.size * text.length;
    if (this.#left < 0) throw new Error(TOO_LONG);
    return pattern.test(text);
  }
}

/**
 * About how long a pattern takes to compile, in instructions; at least its length. It is known before, because `(…){1000}`
 * takes a thousand times the time of its length, and some classes have to be put together from thousands of ranges.
 */
export function patternCost(source: string): number {
  if (source.length > PATTERN_CHARS_MAX) return source.length;
  return Math.max(expandedSize(source), source.length) + costOfClasses(source);
}

const UNICODE_CLASS = /\\p/gi;
const COST_PER_UNICODE_CLASS = 40;
const IGNORES_CASE = /\(\?\w*i/;
const MEMBER = String.raw`\\x\{[0-9a-f]+\}|\\x[0-9a-f]{2}|\\[0-7]{1,3}|[^\\]`;
const RANGE = new RegExp(`(${MEMBER})-(${MEMBER})`, 'gisu');
/** Where case does not matter, so many characters of a range are looked up in the time of an instruction. */
const CHARACTERS_PER_INSTRUCTION = 150;

/** What classes cost beyond their length. Text that only looks like one is counted too. */
function costOfClasses(source: string): number {
  const named = source.matchAll(UNICODE_CLASS).toArray().length * COST_PER_UNICODE_CLASS;
  if (!IGNORES_CASE.test(source)) return named;
  const widths = source.matchAll(RANGE).map(([, from, to]) => Math.max(0, codePointOf(to!) - codePointOf(from!)));
  return widths.reduce((sum, width) => sum + width / CHARACTERS_PER_INSTRUCTION, named);
}

/** The code point of a member of a class, which is a character, or its number in hexadecimal or octal digits. */
function codePointOf(member: string): number {
  const [, hex] = /^\\x\{?([0-9a-f]+)/i.exec(member) ?? [];
  if (hex !== undefined) return Number.parseInt(hex, 16);
  return member.length > 1 && member.startsWith('\\') ? Number.parseInt(member.slice(1), 8) : member.codePointAt(0)!;
}

/** An escape, a class, a quantifier or a single character; a class that is not closed goes on to the end. */
const TOKEN = /\\.|\[\^?\]?(?:\\.|[^\]\\])*(?:\]|$)|\{(\d+)(?:,(\d*))?\}|./gsu;

/** About how many instructions a pattern has: its atoms, each as often as its quantifiers repeat it. */
function expandedSize(source: string): number {
  const outer: number[] = [];
  let size = 0;
  let last = 0;
  for (const [token, min, max] of source.matchAll(TOKEN)) {
    if (token === '(') {
      outer.push(size);
      size = 0;
      last = 0;
    } else if (token === ')') {
      last = size + 2;
      size = (outer.pop() ?? 0) + last;
    } else if (min !== undefined) {
      const repeated = last * Math.max(Number(min), Number(max ?? 0), 1);
      size += repeated - last;
      last = repeated;
    } else {
      last = 1;
      size += last;
    }
  }
  return size + outer.reduce((sum, each) => sum + each, 0);
}
