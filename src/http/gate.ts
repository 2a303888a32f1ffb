import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RequestAudit } from '../capabilities/trust/audit/door.ts';
import {
  type Authorization,
  type Credential,
  credentialOf,
  UNAUTHENTICATED,
} from '../capabilities/trust/authorization/door.ts';
import { isRefusal, type Refusal, refuse } from '../protocol/errors.ts';
import { parseTrace, traceHeaders } from '../protocol/format/trace.ts';
import { type Clock, sleep } from '../system/clock.ts';
import { spanIdOf } from '../system/digest.ts';
import { sendRefusal } from './answers.ts';
import { PROTOCOL_VERSION } from './discovery.ts';
import { type RateLimit, RateLimiter } from './rate-limit.ts';

/** What the gate decides with. */
interface GateOptions {
  readonly authorization: Pick<Authorization, 'authenticate'>;
  readonly audit: Pick<RequestAudit, 'keyUsed' | 'denied'>;
  readonly clock: Clock;
  /** Requests that are answered at once; more are refused. */
  readonly inFlightMax: number;
  readonly rateLimit: RateLimit;
  /** The number of hosts over which requests are balanced. */
  readonly hosts: () => number;
}

/** The `Retry-After` of a host at capacity. */
export const RETRY_AFTER_S = 1;
const BEARER = /^Bearer +([\x21-\x7e]{1,8192})$/i;

/** Admits requests, in this order: capacity, rate limit, credential, scope. No body has been read by then. */
export class Gate {
  readonly #options: GateOptions;
  readonly #limiter: RateLimiter;
  readonly #inFlight = new Set<AbortController>();
  #onEmpty = (): void => {};

  constructor(options: GateOptions) {
    this.#options = options;
    this.#limiter = new RateLimiter(options.rateLimit, options.hosts);
  }

  /** The number of requests being answered, open streams included. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** The hook that every request passes first. */
  readonly enter = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    this.#begin(request, reply);
    const refusal = await this.#check(request);
    return refusal ? sendRefusal(reply, refusal) : undefined;
  };

  /** Ends every stream. */
  close(): void {
    for (const abort of this.#inFlight) abort.abort();
  }

  /** Settles when no request is being answered, or when the time is up. */
  async drained(withinMs: number): Promise<void> {
    if (this.#inFlight.size === 0) return;
    const empty = new AbortController();
    this.#onEmpty = () => empty.abort();
    await sleep(this.#options.clock, withinMs, empty.signal);
  }

  #begin(request: FastifyRequest, reply: FastifyReply): void {
    request.startedAt = this.#options.clock.now();
    request.abort = new AbortController();
    this.#inFlight.add(request.abort);
    reply.raw.once('close', () => {
      this.#inFlight.delete(request.abort);
      if (this.#inFlight.size === 0) this.#onEmpty();
      if (!reply.raw.writableFinished) request.abort.abort();
    });
    const trace = parseTrace(request.headers.traceparent, request.headers.tracestate);
    if (trace) reply.headers(traceHeaders(trace, spanIdOf(request.id)));
    if (request.url.startsWith('/v1/')) reply.header('OpenWOP-Version', PROTOCOL_VERSION);
  }

  async #check(request: FastifyRequest): Promise<Refusal | undefined> {
    const hosts = request.raw.headersDistinct.host?.length ?? 0;
    if (hosts > 1) return HOST_REPEATED;
    if (hosts === 0 && request.raw.httpVersion !== '1.0') return HOST_MISSING;
    const { isExempt, scope } = request.routeOptions.config;
    if (isExempt) return undefined;
    if (this.#inFlight.size > this.#options.inFlightMax) return AT_CAPACITY;
    const [, text] = BEARER.exec(request.headers.authorization ?? '') ?? [];
    const credential = text === undefined ? undefined : credentialOf(text);
    // The rate limit counts by credential, wherever its requests come from, and by address without one.
    const limited = this.#limiter.take(credential?.hash ?? request.ip, this.#options.clock.now());
    if (limited) return limited;
    if (scope === 'public') return undefined;
    if (request.is404 && !request.url.startsWith('/v1/')) return UNVERSIONED;
    return credential ? this.#admit(request, credential, scope) : UNAUTHENTICATED;
  }

  /** Unknown paths are refused only after this: without a credential nobody learns which exist. */
  async #admit(
    request: FastifyRequest,
    credential: Credential,
    scope: string | undefined,
  ): Promise<Refusal | undefined> {
    const { authorization, audit } = this.#options;
    const caller = await authorization.authenticate(credential);
    if (isRefusal(caller)) return caller;
    request.caller = caller;
    audit.keyUsed(caller);
    if (scope === undefined || scope === 'any') return undefined;
    if ((caller.scopes as ReadonlySet<string>).has(scope)) return undefined;
    await audit.denied(caller, { method: request.method, route: request.routeOptions.config.route ?? 'none', scope });
    return refuse('forbidden', `This operation requires the scope ${scope}.`, { scopeRequired: scope });
  }
}

const AT_CAPACITY: Refusal = {
  ...refuse('service_unavailable', 'This host is at capacity. Try again in a moment.', { retryAfter: RETRY_AFTER_S }),
  headers: { 'Retry-After': String(RETRY_AFTER_S) },
};

const HOST_MISSING = refuse('validation_error', 'The Host header is missing.', { field: 'Host' });

/** A proxy and this host could each believe another one of them. */
const HOST_REPEATED = refuse('validation_error', 'There is more than one Host header.', { field: 'Host' });

const UNVERSIONED: Refusal = { ...refuse('validation_error', 'The API of this host is under /v1/.'), status: 400 };
