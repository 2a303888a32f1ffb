import type { IncomingMessage, ServerResponse } from 'node:http';

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
/** Headers of answers that pages may read. */
const EXPOSED = 'ETag, Location, Retry-After, Link, Capabilities-Etag';
const HEADER_NAMES = /^[A-Za-z0-9-]+( *, *[A-Za-z0-9-]+)*$/;
/** How long browsers may remember that a request was permitted. */
const REMEMBERED_S = '600';

/**
 * Lets pages of other origins use the API. Off unless the operator names origins; credentials of the browser, such as
 * cookies, are never accepted, so a page can act only with a key that it was given.
 */
export class Cors {
  readonly #origins: ReadonlySet<string>;

  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins);
  }

  /** Marks the answer to a request as readable for its origin, if that is permitted. */
  readonly mark = ({ headers: { origin } }: IncomingMessage, response: ServerResponse): void => {
    response.setHeader('Vary', 'Origin');
    if (!this.#permits(origin)) return;
    response.setHeader('Access-Control-Allow-Origin', origin!);
    response.setHeader('Access-Control-Expose-Headers', EXPOSED);
  };

  /** The headers that permit a request which the browser asks about first; undefined if this is no such question. */
  preflight({ method, headers }: IncomingMessage): Record<string, string> | undefined {
    const asked = headers['access-control-request-method'];
    if (method !== 'OPTIONS' || asked === undefined || !this.#permits(headers.origin)) return undefined;
    const names = headers['access-control-request-headers'] ?? '';
    return {
      'Access-Control-Allow-Methods': METHODS,
      'Access-Control-Max-Age': REMEMBERED_S,
      ...(HEADER_NAMES.test(names) ? { 'Access-Control-Allow-Headers': names } : {}),
    };
  }

  #permits(origin: string | undefined): boolean {
    return origin !== undefined && (this.#origins.has(origin) || this.#origins.has('*'));
  }
}
