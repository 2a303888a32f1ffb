import { parse } from 'secure-json-parse';

/** Maximum nesting; deeper input is not legitimate and would endanger recursive code. */
const DEPTH_MAX = 64;

/** Thrown by `parseJson`; the message never quotes the input. */
export class BadJson extends Error {
  override readonly name = 'BadJson';
}

/**
 * Parses untrusted JSON; throws BadJson if it is invalid, nested too deeply, contains `__proto__` or a number that is
 * beyond those of JavaScript. Empty text gives undefined.
 */
export function parseJson(text: string, what = 'body'): unknown {
  if (text === '') return undefined;
  const { isTooDeep, mayOverflow } = scan(text);
  if (isTooDeep) throw new BadJson(`The ${what} is nested deeper than ${DEPTH_MAX} levels.`);
  const value = parsed(text, what);
  // What is read as infinite would be stored as null, and be another value after a restart.
  if (mayOverflow && holdsInfinity(value)) throw new BadJson(`The ${what} has a number that is too large.`);
  return value;
}

function parsed(text: string, what: string): unknown {
  try {
    return parse(text, undefined, { protoAction: 'error', constructorAction: 'ignore' });
  } catch {
    throw new BadJson(`The ${what} is not valid JSON.`);
  }
}

function holdsInfinity(value: unknown): boolean {
  if (typeof value === 'number') return !Number.isFinite(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsInfinity);
}

const QUOTE = 34;
const BACKSLASH = 92;
const ZERO = 48;
const NINE = 57;
/** A letter with this bit is a small one, a square bracket with it a curly one. */
const SMALL = 32;
const OPENER = 123;
const CLOSER = 125;
const EXPONENT = 101;
/** Numbers of fewer digits are below the largest one, if they have no exponent. */
const DIGITS_MAX = 308;

interface Scan {
  readonly isTooDeep: boolean;
  readonly mayOverflow: boolean;
}

/** Looks at what is outside strings in a single pass, before the parser allocates anything. */
function scan(text: string): Scan {
  let depth = 0;
  let digits = 0;
  let mayOverflow = false;
  let inString = false;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (inString) {
      if (code === BACKSLASH) index++;
      else if (code === QUOTE) inString = false;
      continue;
    }
    if (code >= ZERO && code <= NINE) {
      if (++digits > DIGITS_MAX) mayOverflow = true;
      continue;
    }
    const sort = code | SMALL;
    if (digits > 0 && sort === EXPONENT) mayOverflow = true;
    digits = 0;
    if (code === QUOTE) inString = true;
    else if (sort === OPENER) {
      if (++depth > DEPTH_MAX) return { isTooDeep: true, mayOverflow };
    } else if (sort === CLOSER) depth--;
  }
  return { isTooDeep: false, mayOverflow };
}
