import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RequestAudit } from '../capabilities/trust/audit/door.ts';
import {
  type Authorization,
  type Credential,
  credentialOf,
  UNAUTHENTICATED,
} from '../capabilities/trust/authorization/door.ts';
import { isRefusal, type Refusal, refuse } from '../protocol/errors.ts';
import { type Clock, sleep } from '../system/clock.ts';
import { sendRefusal } from './answers.ts';
import { PROTOCOL_VERSION } from './discovery.ts';
import { type RateLimit, RateLimiter } from './rate-limit.ts';

export interface GateOptions {
  readonly authorization: Pick<Authorization, 'authenticate'>;
  readonly audit: Pick<RequestAudit, 'keyUsed' | 'denied'>;
  readonly clock: Clock;
  readonly inFlightMax: number;
  readonly rateLimit: RateLimit;
  /** Hosts that callers' requests are spread over. */
  readonly hosts: () => number;
}

export interface Gate {
  readonly enter: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;
  readonly inFlight: number;
  /** Ends every stream. */
  close(): void;
  /** Settles when nobody is being answered, or when the time is up. */
  drained(withinMs: number): Promise<void>;
}

/** When to come back to a host at capacity. */
export const RETRY_AFTER_S = 1;
const BEARER = /^Bearer +([\x21-\x7e]{1,8192})$/i;

/** Who gets in, in this order: capacity, rate, credential, scope. Nothing of a body has been read by then. */
export function openGate({ authorization, audit, clock, inFlightMax, rateLimit, hosts }: GateOptions): Gate {
  const limiter = new RateLimiter(rateLimit, hosts);
  const open = new Set<AbortController>();
  let whenEmpty = (): void => {};

  return {
    enter: async (request, reply) => {
      begin(request, reply);
      const refusal = await check(request);
      return refusal ? sendRefusal(reply, refusal) : undefined;
    },
    get inFlight() {
      return open.size;
    },
    close() {
      for (const abort of open) abort.abort();
    },
    drained: (withinMs) => {
      if (open.size === 0) return Promise.resolve();
      const empty = new AbortController();
      whenEmpty = () => empty.abort();
      return sleep(clock, withinMs, empty.signal);
    },
  };

  function begin(request: FastifyRequest, reply: FastifyReply): void {
    request.startedAt = clock.now();
    request.abort = new AbortController();
    open.add(request.abort);
    reply.raw.once('close', () => {
      open.delete(request.abort);
      if (open.size === 0) whenEmpty();
      if (!reply.raw.writableFinished) request.abort.abort();
    });
    if (request.url.startsWith('/v1/')) reply.header('OpenWOP-Version', PROTOCOL_VERSION);
  }

  async function check(request: FastifyRequest): Promise<Refusal | undefined> {
    if (request.headers.host === undefined && request.raw.httpVersion !== '1.0') return hostMissing();
    const { isExempt, scope } = request.routeOptions.config;
    if (isExempt) return undefined;
    if (open.size > inFlightMax) return atCapacity();
    const [, text] = BEARER.exec(request.headers.authorization ?? '') ?? [];
    const credential = text === undefined ? undefined : credentialOf(text);
    // A credential counts for itself, wherever it comes from; without one, the address does.
    const limited = limiter.take(credential?.hash ?? request.ip, clock.now());
    if (limited) return limited;
    if (scope === 'public') return undefined;
    if (request.is404 && !request.url.startsWith('/v1/')) return unversioned();
    return credential ? admit(request, credential, scope) : UNAUTHENTICATED;
  }

  /** Absent things are refused only after the credential: nobody learns what exists without one. */
  async function admit(
    request: FastifyRequest,
    credential: Credential,
    scope: string | undefined,
  ): Promise<Refusal | undefined> {
    const caller = await authorization.authenticate(credential);
    if (isRefusal(caller)) return caller;
    request.caller = caller;
    audit.keyUsed(caller);
    if (scope === undefined || scope === 'any') return undefined;
    if ((caller.scopes as ReadonlySet<string>).has(scope)) return undefined;
    await audit.denied(caller, { method: request.method, route: request.routeOptions.config.route ?? 'none', scope });
    return refuse('forbidden', `This takes the scope ${scope}.`, { scopeRequired: scope });
  }
}

function atCapacity(): Refusal {
  return {
    ...refuse('service_unavailable', 'This host is at capacity. Try again in a moment.', { retryAfter: RETRY_AFTER_S }),
    headers: { 'Retry-After': String(RETRY_AFTER_S) },
  };
}

function hostMissing(): Refusal {
  return refuse('validation_error', 'Say which host is asked, in the Host header.', { field: 'Host' });
}

function unversioned(): Refusal {
  return { ...refuse('validation_error', 'This host serves the protocol under /v1/.'), status: 400 };
}
