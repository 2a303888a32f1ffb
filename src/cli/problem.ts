import { NotProvidedError, RefusedError, UnreachableError } from '../client/index.ts';
import { EXIT, type ExitCode, UsageError } from './exit.ts';
import { Interrupted } from './terminal.ts';
import { harmless } from './text.ts';

export interface Told {
  readonly code: ExitCode;
  readonly lines: readonly string[];
}

/** What went wrong, in words that say what to do next. Undefined for what nobody has foreseen. */
export function tell(error: unknown): Told | undefined {
  if (error instanceof UsageError) return { code: EXIT.usage, lines: [error.message] };
  if (error instanceof Interrupted) return { code: EXIT.waiting, lines: ['What was started goes on.'] };
  if (error instanceof UnreachableError) {
    return {
      code: EXIT.unreachable,
      lines: [error.message, 'Is it running? `capstan serve` starts a host; CAPSTAN_URL or `capstan login` name one.'],
    };
  }
  if (error instanceof NotProvidedError) {
    return { code: EXIT.refused, lines: [error.message, '`capstan doctor` shows what it serves.'] };
  }
  if (error instanceof RefusedError) return { code: EXIT.refused, lines: refusalLines(error) };
  const { syscall, path, code } = error as NodeJS.ErrnoException;
  if (syscall !== undefined && path !== undefined)
    return { code: EXIT.usage, lines: [`${path} cannot be used: ${code}.`] };
  return undefined;
}

function refusalLines(error: RefusedError): string[] {
  const { code, message, details } = error;
  const fields = Array.isArray(details.fields) ? details.fields : [];
  return [
    `${harmless(message)} (${harmless(code)})`,
    ...fields.slice(1).map(({ path, message }) => `  ${harmless(String(path))} ${harmless(String(message))}`),
    ...nextStep(error),
  ];
}

function nextStep({ status, code, details }: RefusedError): string[] {
  if (status === 401) return ['Log in with `capstan login`, or set CAPSTAN_KEY.'];
  if (code === 'forbidden' && typeof details.scopeRequired === 'string') {
    return [
      `Your key lacks the scope ${details.scopeRequired}; an owner can make one that has it: \`capstan keys create\`.`,
    ];
  }
  if (status === 404) return ['Check the id; `capstan runs list` and `capstan workflows list` show what there is.'];
  if (code === 'run_terminal') return ['The run is over. `capstan runs fork` begins another with its history.'];
  if (status === 429 || status === 503) return ['The host is busy. Try again a little later.'];
  return [];
}
