import { NotProvidedError, RefusedError, UnreachableError } from '../client/index.ts';
import type { Login } from './credentials.ts';
import { EXIT, type ExitCode, UsageError } from './exit.ts';
import { missingText, type ResourceArgument } from './resource-arguments.ts';
import { Interrupted } from './terminal.ts';
import { sanitize } from './text.ts';

/** How an error is shown: the exit code, and the lines for standard error. */
interface ErrorReport {
  readonly code: ExitCode;
  readonly lines: readonly string[];
}

/** What a command was doing when an error came up. */
export interface Situation {
  /** The host and the key that were used; undefined for commands that choose their own. */
  readonly login?: Login | undefined;
  /** The resources that the command line names. */
  readonly named?: readonly ResourceArgument[] | undefined;
}

/** Explains an error and what to do next; undefined for unexpected errors, which keep their stack trace. */
export function describeError(error: unknown, situation: Situation = {}): ErrorReport | undefined {
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
  if (error instanceof RefusedError) return { code: EXIT.refused, lines: refusalLines(error, situation) };
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

function refusalLines(error: RefusedError, { login, named = [] }: Situation): string[] {
  const { status, code, message, details } = error;
  if (status === 401) return keyLines(login);
  if (isNoHost(code)) return noHostLines(error, login);
  if (code === 'not_found' && named.length > 0 && isPlain(error)) {
    return [sanitize(missingText(named)), ...nextStep(error, named)];
  }
  const fields = Array.isArray(details.fields) ? details.fields : [];
  return [
    sanitize(`${message} (${[code, ...placeOf(error)].join(', ')})`),
    ...fields.slice(1).map(({ path, message }) => `  ${sanitize(String(path))} ${sanitize(String(message))}`),
    ...takenBy(error),
    ...nextStep(error, named),
  ];
}

/** Whether an error says no more than that something is not there; the nearest name that exists is our own addition. */
function isPlain({ details: { nearest: _, ...others } }: RefusedError): boolean {
  return Object.keys(others).length === 0;
}

/** A host of the protocol answers in JSON, with an error envelope; proxies say that a host is away in their own words. */
function isNoHost(code: string): boolean {
  return code === 'unreadable_answer' || /^http_4\d\d$/.test(code) || /[^\w.-]/.test(code);
}

function noHostLines({ status, code }: RefusedError, login: Login | undefined): string[] {
  const server = login ? `The server at ${login.url}` : 'The server';
  const why =
    code === 'unreadable_answer' ? 'its reply is not JSON' : `it replied with status ${status} and no OpenWOP error`;
  return [`${server} is not a Capstan host: ${why}.`, 'Check the address: CAPSTAN_URL, or that of `capstan login`.'];
}

/** No key was sent, or the host rejected it. */
function keyLines(login: Login | undefined): string[] {
  if (!login) return ['The host does not accept this key: it is unknown, revoked or has expired.'];
  const { url, source } = login;
  if (source === undefined) {
    return [
      `There is no key for ${url}.`,
      `Log in with \`capstan login ${url}\`, or set CAPSTAN_KEY; the first start of a host prints a key.`,
    ];
  }
  const from = source === 'login' ? 'from `capstan login`' : 'in CAPSTAN_KEY';
  const otherwise = source === 'login' ? '' : ', or unset CAPSTAN_KEY to use that of `capstan login`';
  return [
    `The host at ${url} does not accept the key ${from}: it is unknown, revoked or has expired.`,
    `Get another from an owner (\`capstan keys create\`) and ${
      source === 'login' ? `run \`capstan login ${url}\` again` : `set CAPSTAN_KEY to it`
    }${otherwise}.`,
  ];
}

/** The field that an error is about, unless the message names it. */
function placeOf({ message, details: { field, fields, missing } }: RefusedError): string[] {
  if (typeof field !== 'string' || Array.isArray(fields) || Array.isArray(missing)) return [];
  if (message.includes(field)) return [];
  return [field.startsWith('inputs.') ? `input ${field.slice('inputs.'.length)}` : `field ${field}`];
}

/** The inputs of a workflow, for an error about one of them. */
function takenBy({ details: { takes } }: RefusedError): string[] {
  if (!Array.isArray(takes)) return [];
  return [sanitize(`The workflow takes: ${takes.join(', ') || 'no inputs'}.`)];
}

function nextStep({ status, code, details }: RefusedError, [resource]: readonly ResourceArgument[]): string[] {
  if (typeof details.nearest === 'string') return [`Did you mean ${sanitize(details.nearest)}?`];
  if (code === 'forbidden' && typeof details.scopeRequired === 'string') {
    return [
      `Your key lacks the scope ${details.scopeRequired}. An owner can create a key that has it: \`capstan keys create\`.`,
    ];
  }
  if (status === 404 && resource) return [`\`capstan ${resource.list}\` lists what there is.`];
  if (code === 'run_terminal') return ['The run has ended. `capstan runs fork` starts a new run with its history.'];
  if (status === 429 || status === 503) return ['The host is busy. Try again later.'];
  return [];
}
