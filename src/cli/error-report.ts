import { NotProvidedError, RefusedError, UnreachableError } from '../client/index.ts';
import { EXIT, type ExitCode, UsageError } from './exit.ts';
import { Interrupted } from './terminal.ts';
import { sanitize } from './text.ts';

/** How an error is shown: the exit code, and the lines for standard error. */
interface ErrorReport {
  readonly code: ExitCode;
  readonly lines: readonly string[];
}

/** Explains an error and what to do next; undefined for unexpected errors, which keep their stack trace. */
export function describeError(error: unknown): ErrorReport | undefined {
  if (error instanceof UsageError) return { code: EXIT.usage, lines: [error.message] };
  if (error instanceof Interrupted)
    return { code: EXIT.waiting, lines: ['Stopped watching. What was started continues on the host.'] };
  if (error instanceof UnreachableError) {
    return {
      code: EXIT.unreachable,
      lines: [
        error.message,
        'Start a host with `capstan serve`, or select another one with CAPSTAN_URL or `capstan login`.',
      ],
    };
  }
  if (error instanceof NotProvidedError) {
    return { code: EXIT.refused, lines: [error.message, '`capstan doctor` lists what this host supports.'] };
  }
  if (error instanceof RefusedError) return { code: EXIT.refused, lines: refusalLines(error) };
  const { syscall, path, code } = error as NodeJS.ErrnoException;
  if (syscall !== undefined && path !== undefined) return { code: EXIT.usage, lines: [`Cannot use ${path}: ${code}.`] };
  return undefined;
}

/** The error as one line of JSON: what the host sent, or the same shape for errors that the command found itself. */
export function errorEnvelope(error: unknown, report: ErrorReport): string {
  if (!(error instanceof RefusedError)) {
    const names: Record<number, string> = { [EXIT.usage]: 'usage', [EXIT.unreachable]: 'unreachable' };
    return JSON.stringify({ error: names[report.code] ?? 'stopped', message: report.lines.join(' ') });
  }
  const { code, message, details } = error;
  return JSON.stringify({ error: code, message, ...(Object.keys(details).length === 0 ? {} : { details }) });
}

function refusalLines(error: RefusedError): string[] {
  const { code, message, details } = error;
  const fields = Array.isArray(details.fields) ? details.fields : [];
  return [
    sanitize(`${message} (${[code, ...placeOf(error)].join(', ')})`),
    ...fields.slice(1).map(({ path, message }) => `  ${sanitize(String(path))} ${sanitize(String(message))}`),
    ...takenBy(error),
    ...nextStep(error),
  ];
}

/** The field that an error is about, unless the message names it. */
function placeOf({ message, details: { field, fields } }: RefusedError): string[] {
  if (typeof field !== 'string' || Array.isArray(fields) || message.includes(field)) return [];
  return [field.startsWith('inputs.') ? `input ${field.slice('inputs.'.length)}` : `field ${field}`];
}

/** The inputs of a workflow, for an error about one of them. */
function takenBy({ details: { takes } }: RefusedError): string[] {
  if (!Array.isArray(takes)) return [];
  return [sanitize(`The workflow takes: ${takes.join(', ') || 'no inputs'}.`)];
}

function nextStep({ status, code, details }: RefusedError): string[] {
  if (typeof details.nearest === 'string') return [`Did you mean ${sanitize(details.nearest)}?`];
  if (status === 401) return ['Log in with `capstan login`, or set CAPSTAN_KEY.'];
  if (code === 'forbidden' && typeof details.scopeRequired === 'string') {
    return [
      `Your key lacks the scope ${details.scopeRequired}. An owner can create a key that has it: \`capstan keys create\`.`,
    ];
  }
  if (status === 404) return ['Check the id. `capstan runs list` and `capstan workflows list` show the existing ones.'];
  if (code === 'run_terminal') return ['The run has ended. `capstan runs fork` starts a new run with its history.'];
  if (status === 429 || status === 503) return ['The host is busy. Try again later.'];
  return [];
}
