import { REDACTED } from './redaction.ts';

/** An exception that says where it came from, as far as its stack can be told from its message, and nothing else. */
export function withoutMessage(error: unknown): Error {
  return Object.assign(new Error(REDACTED), { stack: [REDACTED, ...framesOf(error)].join('\n    ') });
}

/** What the language throws. Its messages may quote values of a run. */
const OF_THE_LANGUAGE = [TypeError, RangeError, SyntaxError, ReferenceError];

/** An exception as the log may have it: without its message if the language wrote that. */
export function loggable(error: unknown): unknown {
  return OF_THE_LANGUAGE.some((type) => error instanceof type) ? withoutMessage(error) : error;
}

function framesOf(error: unknown): string[] {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return [];
  const at = error.stack.indexOf(error.message);
  const rest = at < 0 ? '' : error.stack.slice(at + error.message.length);
  return rest
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('at '));
}
