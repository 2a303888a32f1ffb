import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ConsoleSessions } from '../capabilities/operations/console/door.ts';
import type { RequestAudit } from '../capabilities/trust/audit/door.ts';
import {
  type Authorization,
  bearerOf,
  type Credential,
  credentialOf,
  UNAUTHENTICATED,
} from '../capabilities/trust/authorization/door.ts';
import { isRefusal, type Refusal, refuse } from '../protocol/errors.ts';
import { parseTrace, traceHeaders } from '../protocol/format/trace.ts';
import { PROTOCOL_VERSION } from '../protocol/running/runs.ts';
import { BoundedCache } from '../runtime/bounded-cache.ts';
import { type RateLimit, RateLimiter } from '../runtime/rate-limit.ts';
import type { Turns } from '../runtime/turns.ts';
import { type Clock, sleep } from '../system/clock.ts';
import { spanIdOf } from '../system/digest.ts';
import { NO_SNIFFING, sendRefusal } from './answers.ts';
import { checkSender } from './cross-site.ts';
import type { KnownPaths } from './known-paths.ts';
import { OpenRequest, OpenRequests } from './open-requests.ts';
import { atLimit, type LimitScope, Share } from './shares.ts';

/** What the gate decides with. */
interface GateOptions {
  readonly authorization: Pick<Authorization, 'authenticate'>;
  readonly sessions: ConsoleSessions;
  readonly audit: Pick<RequestAudit, 'keyUsed' | 'denied'>;
  readonly clock: Clock;
  readonly turns: Pick<Turns, 'next'>;
  readonly paths: KnownPaths;
  readonly limits: GateLimits;
  /** Called for each request that a limit turns away. */
  readonly onLimit: (scope: LimitScope | 'address' | 'rate') => void;
  /** The number of hosts over which requests are balanced. */
  readonly hosts: () => number;
}

/** A place of a share that a request has taken. */
export interface Place {
  readonly share: Share;
  readonly name: string;
}

/** How much the host takes on, and how much of it one caller may have. */
export interface GateLimits {
  /** Requests that are answered at once; more are refused. */
  readonly inFlightMax: number;
  readonly inFlightPerTenant: number;
  readonly inFlightPerKey: number;
  readonly streamsPerTenant: number;
  readonly streamsPerKey: number;
  /** Requests without a credential that are answered at once. */
  readonly publicInFlightMax: number;
  /** Requests of each key. */
  readonly requestsPerSecond: number;
  /** Requests from each address whose credential is not known to be good. */
  readonly addressPerSecond: number;
}

/** Credentials that were good lately; requests with them are not counted by address. */
const KNOWN_MAX = 10_000;
/** How long the body of a refused request may still arrive before its connection is cut. */
const UNREAD_BODY_MS = 2_000;
/** How long a request without a credential may take, answer included. */
const PUBLIC_MS = 30_000;
const PUBLIC = 'public';

/**
 * Admits requests, in this order: capacity, address, rate limit, credential, the shares of the tenant and the key, its turn,
 * scope. No body has been read by then.
 */
export class Gate {
  readonly #options: GateOptions;
  readonly #keys: RateLimiter;
  readonly #addresses: RateLimiter;
  readonly #known = new BoundedCache<string, true>(KNOWN_MAX);
  readonly #shares: Record<Exclude<LimitScope, 'host'>, Share>;
  readonly #open = new OpenRequests();
  #onEmpty = (): void => {};

  constructor(options: GateOptions) {
    this.#options = options;
    const { limits, hosts } = options;
    this.#keys = new RateLimiter(rateOf(limits.requestsPerSecond), hosts);
    this.#addresses = new RateLimiter(rateOf(limits.addressPerSecond), hosts, 'address');
    this.#shares = {
      public: new Share('public', limits.publicInFlightMax),
      tenant: new Share('tenant', limits.inFlightPerTenant),
      key: new Share('key', limits.inFlightPerKey),
      'tenant-streams': new Share('tenant-streams', limits.streamsPerTenant),
      'key-streams': new Share('key-streams', limits.streamsPerKey),
    };
  }

  /** The most requests that one tenant has in flight. */
  get mostOfATenant(): number {
    return this.#shares.tenant.most;
  }

  /** The number of tenants that have as many requests or streams open as they may. */
  get tenantsAtLimit(): number {
    return new Set([...this.#shares.tenant.atLimit, ...this.#shares['tenant-streams'].atLimit]).size;
  }

  /** The number of open event streams. */
  get streams(): number {
    return this.#shares['tenant-streams'].total;
  }

  /** The number of requests being answered, open streams included. */
  get inFlight(): number {
    return this.#open.size;
  }

  /** The hook that every request passes first. */
  readonly enter = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    this.#begin(request, reply);
    const refusal = await this.#check(request, reply);
    return refusal ? this.refuse(request, reply, refusal) : undefined;
  };

  /** Refuses a request whose body has not been read. */
  readonly refuse = (request: FastifyRequest, reply: FastifyReply, refusal: Refusal): FastifyReply => {
    this.#cutUnreadBody(request);
    return sendRefusal(reply, refusal);
  };

  /** Takes a place for a stream, until the connection is closed. */
  readonly openStream = (request: FastifyRequest): Refusal | undefined => {
    const { caller } = request;
    if (!caller) return undefined;
    return (
      this.#take('tenant-streams', caller.subject.tenant, request) ?? this.#take('key-streams', caller.keyId, request)
    );
  };

  /** Ends every stream. */
  close(): void {
    this.#open.abortAll();
  }

  /** Settles when no request is being answered, or when the time is up. */
  async drained(withinMs: number): Promise<void> {
    if (this.#open.size === 0) return;
    const empty = new AbortController();
    this.#onEmpty = () => empty.abort();
    await sleep(this.#options.clock, withinMs, empty.signal);
  }

  #begin(request: FastifyRequest, reply: FastifyReply): void {
    request.startedAt = this.#options.clock.now();
    reply.header(...NO_SNIFFING);
    if (request.is404) request.knownPath = this.#options.paths.find(request.url);
    request.open = new OpenRequest();
    this.#open.add(request.open);
    request.places = [];
    reply.raw.once('close', () => {
      this.#open.delete(request.open);
      for (const { share, name } of request.places ?? []) share.leave(name);
      request.places = undefined;
      if (this.#open.size === 0) this.#onEmpty();
      if (!reply.raw.writableFinished) request.open.abort();
    });
    const trace = parseTrace(request.headers.traceparent, request.headers.tracestate);
    if (trace) reply.headers(traceHeaders(trace, spanIdOf(request.id)));
    if (request.url.startsWith('/v1/')) reply.header('OpenWOP-Version', PROTOCOL_VERSION);
  }

  async #check(request: FastifyRequest, reply: FastifyReply): Promise<Refusal | undefined> {
    const hosts = hostHeaders(request.raw.rawHeaders);
    if (hosts > 1) return HOST_REPEATED;
    if (hosts === 0 && request.raw.httpVersion !== '1.0') return HOST_MISSING;
    const { isProbe, isExempt, scope } = request.routeOptions.config;
    if (isProbe) return undefined;
    const { inFlightMax } = this.#options.limits;
    if (!isExempt && this.#open.size > inFlightMax) return this.#limited('host', atLimit('host', inFlightMax));
    const sent = await this.#credentialOf(request);
    const credential = sent && credentialOf(sent.text);
    const limited = this.#checkRate(request, credential);
    if (limited || isExempt) return limited;
    if (scope === 'public' || request.knownPath?.isPublic) return this.#admitPublic(request, reply);
    if (request.is404 && !request.knownPath && !request.url.startsWith('/v1/')) return UNVERSIONED;
    if (!credential) return UNAUTHENTICATED;
    return (sent?.isSession ? checkSender(request) : undefined) ?? this.#admit(request, credential);
  }

  /** What the request itself sends wins over the session of the browser. */
  async #credentialOf({ headers }: FastifyRequest): Promise<{ text: string; isSession: boolean } | undefined> {
    const sent = bearerOf(headers.authorization);
    if (sent !== undefined) return { text: sent, isSession: false };
    if (headers.cookie === undefined || headers.authorization !== undefined) return undefined;
    const text = await this.#options.sessions.credentialIn(headers.cookie);
    return text === undefined ? undefined : { text, isSession: true };
  }

  /**
   * Counts by credential, wherever its requests come from, and by address as long as the credential is not known to be
   * good: guessing is limited before anything is looked up, and does not lock out others behind the same proxy.
   */
  #checkRate({ ip }: FastifyRequest, credential: Credential | undefined): Refusal | undefined {
    const now = this.#options.clock.now();
    const isKnown = credential !== undefined && this.#known.get(credential.hash) !== undefined;
    const byAddress = isKnown ? undefined : this.#addresses.take(ip, now);
    if (byAddress) return this.#limited('address', byAddress);
    const byKey = credential && this.#keys.take(credential.hash, now);
    return byKey && this.#limited('rate', byKey);
  }

  /** Requests without a credential have few places of their own, and little time. */
  #admitPublic(request: FastifyRequest, reply: FastifyReply): Refusal | undefined {
    const refusal = this.#take(PUBLIC, PUBLIC, request);
    if (refusal) return refusal;
    const cancel = this.#options.clock.after(PUBLIC_MS, () => request.raw.destroy());
    reply.raw.once('close', cancel);
    return undefined;
  }

  #take(scope: Exclude<LimitScope, 'host'>, name: string, request: FastifyRequest): Refusal | undefined {
    const share = this.#shares[scope];
    const refusal = share.take(name);
    if (refusal) return this.#limited(scope, refusal);
    // The connection may have been closed while the credential was checked.
    if (request.places) request.places.push({ share, name });
    else share.leave(name);
    return undefined;
  }

  #limited(scope: LimitScope | 'address' | 'rate', refusal: Refusal): Refusal {
    this.#options.onLimit(scope);
    return refusal;
  }

  /** A caller that was refused must not keep its connection busy with a body that nobody reads. */
  #cutUnreadBody({ raw }: FastifyRequest): void {
    const hasBody = raw.headers['transfer-encoding'] !== undefined || Number(raw.headers['content-length'] ?? 0) > 0;
    if (!hasBody || raw.complete) return;
    const cancel = this.#options.clock.after(UNREAD_BODY_MS, () => {
      if (!raw.complete) raw.destroy();
    });
    raw.once('close', cancel);
  }

  /** Unknown paths are refused only after this: without a credential nobody learns which exist. */
  async #admit(request: FastifyRequest, credential: Credential): Promise<Refusal | undefined> {
    const { authorization, audit, turns } = this.#options;
    const { scope } = request.routeOptions.config;
    const caller = await authorization.authenticate(credential);
    if (isRefusal(caller)) {
      this.#known.delete(credential.hash);
      return caller;
    }
    this.#known.set(credential.hash, true);
    request.caller = caller;
    audit.keyUsed(caller);
    const limited = this.#take('tenant', caller.subject.tenant, request) ?? this.#take('key', caller.keyId, request);
    if (limited) return limited;
    await turns.next(caller.subject.tenant);
    if (scope === undefined || scope === 'any') return undefined;
    if ((caller.scopes as ReadonlySet<string>).has(scope)) return undefined;
    await audit.denied(caller, { method: request.method, route: request.routeOptions.config.route ?? 'none', scope });
    return refuse('forbidden', `This operation requires the scope ${scope}.`, { scopeRequired: scope });
  }
}

const HOST = 'host';

/** The number of Host headers, among names and values in turn. */
function hostHeaders(headers: readonly string[]): number {
  let count = 0;
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!;
    if (name.length === HOST.length && name.toLowerCase() === HOST) count++;
  }
  return count;
}

/** A burst of twice what is sustained. */
function rateOf(perSecond: number): RateLimit {
  return { perSecond, burst: 2 * perSecond };
}

const HOST_MISSING = refuse('validation_error', 'The Host header is missing.', { field: 'Host' });

/** A proxy and this host could each believe another one of them. */
const HOST_REPEATED = refuse('validation_error', 'There is more than one Host header.', { field: 'Host' });

const UNVERSIONED: Refusal = { ...refuse('validation_error', 'The API of this host is under /v1/.'), status: 400 };
