import { parse } from 'secure-json-parse';

/** Maximum nesting; deeper input is not legitimate and would endanger recursive code. */
const DEPTH_MAX = 64;

/** Thrown by `parseJson`; the message never quotes the input. */
export class BadJson extends Error {
  override readonly name = 'BadJson';
}

/**
 * Parses untrusted JSON; throws BadJson if it is invalid, nested too deeply or contains `__proto__`. Empty text gives
 * undefined.
 */
export function parseJson(text: string, what = 'body'): unknown {
  if (text === '') return undefined;
  if (isTooDeep(text)) throw new BadJson(`The ${what} is nested deeper than ${DEPTH_MAX} levels.`);
  try {
    return parse(text, undefined, { protoAction: 'error', constructorAction: 'ignore' });
  } catch {
    throw new BadJson(`The ${what} is not valid JSON.`);
  }
}

const QUOTE = 34;
const BACKSLASH = 92;
const OPENERS = new Set([91, 123]);
const CLOSERS = new Set([93, 125]);

/** Counts brackets outside strings in a single pass, before the parser allocates anything. */
function isTooDeep(text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (inString) {
      if (code === BACKSLASH) index++;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if (OPENERS.has(code)) {
      if (++depth > DEPTH_MAX) return true;
    } else if (CLOSERS.has(code)) depth--;
  }
  return false;
}
