import { parse } from 'secure-json-parse';

/** Deeper than this nobody means it, and recursion over it would be a risk. */
const DEPTH_MAX = 64;

export class BadJson extends Error {
  override readonly name = 'BadJson';
}

/** Parses what somebody sent. Throws BadJson, whose message never repeats it. */
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

/** Looks at brackets outside strings only; takes one pass. */
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
