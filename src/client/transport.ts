import { defined, isObject } from '../protocol/format/json.ts';
import { RefusedError, UnreachableError } from './errors.ts';
import type { HttpAnswer, Machine } from './machine.ts';
import { Backoff, type RetryPolicy } from './retry.ts';

/** One HTTP request, before host URL and credential are added. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  readonly onOpen?: (() => void) | undefined;
  readonly retry: RetryPolicy;
}

/** Sends requests to one host with one credential. */
export class Transport {
  readonly url: string;
  readonly machine: Machine;
  readonly #credential: Readonly<Record<string, string>>;

  /** `credential` are the headers that say who is calling. */
  constructor(url: string, credential: Readonly<Record<string, string>>, machine: Machine) {
    this.url = url.replace(/\/+$/, '');
    this.machine = machine;
    this.#credential = credential;
  }

  /** Sends a request with retries and parses the JSON reply. */
  async json(request: Request): Promise<unknown> {
    return this.#withRetries(request, async () => {
      const response = await this.open(request);
      const text = await this.#orUnreachable(response.text(), request.signal);
      return text === '' ? undefined : parsed(response.status, text);
    });
  }

  /** Sends a request with retries and returns the reply as a stream of bytes. */
  async bytes(request: Request): Promise<ReadableStream<Uint8Array>> {
    const response = await this.#withRetries(request, () => this.open(request));
    return response.body!;
  }

  /** Sends a request once; throws RefusedError for a status that is not 2xx. */
  async open({ method, path, query, body, headers, signal }: Request): Promise<HttpAnswer> {
    const pending = this.machine.fetch(this.url + path + queryText(query), {
      method,
      headers: {
        accept: 'application/json',
        ...this.#credential,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
      // A redirect would send the credential to another host.
      redirect: 'error',
    });
    const response = await this.#orUnreachable(pending, signal);
    if (!response.ok) throw refusalOf(response, await this.#orUnreachable(response.text(), signal), this.machine);
    return response;
  }

  async #withRetries<T>(request: Request, attempt: () => Promise<T>): Promise<T> {
    const backoff = new Backoff(this.machine, request.retry, request.signal);
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        await backoff.after(error);
      }
    }
  }

  /** Maps every network failure to UnreachableError, unless the caller aborted the request. */
  async #orUnreachable<T>(pending: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    try {
      return await pending;
    } catch (error) {
      signal?.throwIfAborted();
      throw (await isBlockedByOrigin(this.url, this.machine)) ? blocked(this.url, error) : unreachable(this.url, error);
    }
  }
}

/** Builds an UnreachableError that names the host and the network error. */
export function unreachable(url: string, cause: unknown): UnreachableError {
  return new UnreachableError(`Cannot reach ${url}${reasonOf(cause)}.`, { cause });
}

function blocked(url: string, cause: unknown): UnreachableError {
  const message = `The request to ${url} was blocked by the browser's origin rules. Its operator can permit this page with CAPSTAN_CORS_ORIGINS.`;
  return new UnreachableError(message, { cause });
}

/**
 * A browser does not tell a script why a request failed. If a request whose answer nobody may read gets through to a host
 * of another origin, it was the origin that kept the first one from being read.
 */
async function isBlockedByOrigin(url: string, { fetch, pageOrigin }: Machine): Promise<boolean> {
  const page = pageOrigin?.();
  if (page === undefined || new URL(url).origin === page) return false;
  return fetch(`${url}/healthz`, { mode: 'no-cors' }).then(
    ({ type }) => type === 'opaque',
    () => false,
  );
}

/** Finds the innermost error code, because Node wraps network errors. */
function reasonOf(error: unknown): string {
  const { cause, code, message } = (error ?? {}) as { cause?: unknown; code?: unknown; message?: unknown };
  if (cause !== undefined) return reasonOf(cause);
  return typeof code === 'string' ? `: ${code}` : typeof message === 'string' && message !== '' ? `: ${message}` : '';
}

function queryText(query: Readonly<Record<string, unknown>> = {}): string {
  const given = Object.entries(defined(query));
  return given.length === 0
    ? ''
    : `?${new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]))}`;
}

function refusalOf({ status, headers }: HttpAnswer, text: string, machine: Machine): RefusedError {
  const { error, message, details } = envelopeOf(text);
  return new RefusedError({
    status,
    code: typeof error === 'string' ? error : `http_${status}`,
    message:
      typeof message === 'string' ? message : `The host replied with status ${status} and no readable error message.`,
    ...(isObject(details) ? { details } : {}),
    retryAfterMs: retryAfterMs(headers.get('retry-after'), machine),
  });
}

function parsed(status: number, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const message = 'The reply is not JSON, so this is not an OpenWOP host.';
    throw new RefusedError({ status, code: 'unreadable_answer', message });
  }
}

/** Parses the error envelope; a proxy may have sent something else. */
function envelopeOf(text: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(text);
    return isObject(parsed) ? parsed : {};
  } catch {
    return {};
  }
}

/** Parses Retry-After, which holds seconds or a date. */
function retryAfterMs(text: string | null, machine: Machine): number | undefined {
  if (text === null || text.trim() === '') return undefined;
  const seconds = Number(text);
  const ms = Number.isNaN(seconds) ? Date.parse(text) - machine.now() : seconds * 1_000;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
