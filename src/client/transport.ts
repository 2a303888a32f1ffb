import { defined, isObject } from '../protocol/format/json.ts';
import { RefusedError, UnreachableError } from './errors.ts';
import type { Machine } from './machine.ts';
import { Backoff, type RetryPolicy } from './retry.ts';

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  readonly retry: RetryPolicy;
}

/** Asks one host, with one credential. */
export class Transport {
  readonly url: string;
  readonly machine: Machine;
  readonly #key: string | undefined;

  constructor(url: string, key: string | undefined, machine: Machine) {
    this.url = url.replace(/\/+$/, '');
    this.machine = machine;
    this.#key = key;
  }

  /** Asks until there is an answer, and reads it as a whole. */
  async json(request: Request): Promise<unknown> {
    return this.#persist(request, async () => {
      const response = await this.open(request);
      const text = await this.#reading(response.text(), request.signal);
      return text === '' ? undefined : parsed(response.status, text);
    });
  }

  /** Asks until there is an answer, and hands it out as it comes. */
  async bytes(request: Request): Promise<ReadableStream<Uint8Array>> {
    const response = await this.#persist(request, () => this.open(request));
    return response.body!;
  }

  /** Asks once. An answer that is no success is thrown. */
  async open({ method, path, query, body, headers, signal }: Request): Promise<Response> {
    const asked = this.machine.fetch(this.url + path + queryText(query), {
      method,
      headers: {
        accept: 'application/json',
        ...(this.#key === undefined ? {} : { authorization: `Bearer ${this.#key}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
      // A credential goes to the host it was given for and nowhere else.
      redirect: 'error',
    });
    const response = await this.#reading(asked, signal);
    if (!response.ok) throw refusalOf(response, await this.#reading(response.text(), signal), this.machine);
    return response;
  }

  async #persist<T>(request: Request, attempt: () => Promise<T>): Promise<T> {
    const backoff = new Backoff(this.machine, request.retry, request.signal);
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        await backoff.after(error);
      }
    }
  }

  /** Whatever breaks on the way is one kind of failure, unless the caller has ended it. */
  async #reading<T>(coming: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    try {
      return await coming;
    } catch (error) {
      signal?.throwIfAborted();
      throw unreachable(this.url, error);
    }
  }
}

export function unreachable(url: string, cause: unknown): UnreachableError {
  return new UnreachableError(`${url} cannot be reached${reasonOf(cause)}.`, { cause });
}

/** Node tells the reason in the cause, and several where a name has several addresses. */
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

function refusalOf({ status, headers }: Response, text: string, machine: Machine): RefusedError {
  const { error, message, details } = envelopeOf(text);
  return new RefusedError({
    status,
    code: typeof error === 'string' ? error : `http_${status}`,
    message: typeof message === 'string' ? message : `The answer was ${status}, with no reason that can be read.`,
    ...(isObject(details) ? { details } : {}),
    retryAfterMs: retryAfterMs(headers.get('retry-after'), machine),
  });
}

function parsed(status: number, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const message = 'What answered is no OpenWOP host: its answer is not JSON.';
    throw new RefusedError({ status, code: 'unreadable_answer', message });
  }
}

/** Something in front of the host may have answered in its own words. */
function envelopeOf(text: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(text);
    return isObject(parsed) ? parsed : {};
  } catch {
    return {};
  }
}

/** Seconds, or a date. */
function retryAfterMs(text: string | null, machine: Machine): number | undefined {
  if (text === null || text.trim() === '') return undefined;
  const seconds = Number(text);
  const ms = Number.isNaN(seconds) ? Date.parse(text) - machine.now() : seconds * 1_000;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
