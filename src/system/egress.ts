import { lookup, Resolver } from 'node:dns/promises';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { connect, isIP, type LookupFunction, type Socket, type TcpNetConnectOpts } from 'node:net';
import { isLoopbackName, isPrivateName, reachOf } from './addresses.ts';
import type { Clock } from './clock.ts';
import { EgressAllowList, type EgressRule } from './egress-allow.ts';
import { withoutEnd } from './text-cuts.ts';

/**
 * The only way to send requests to addresses named by callers, workflows or configuration; it prevents server-side
 * request forgery.
 *
 * E1. A host name is resolved once per request. All its addresses are checked, and only those are connected to.
 * E2. Redirects are not followed, so a permitted address cannot lead to another one.
 * E3. Every exchange is bounded in time and size.
 */
export interface Egress {
  /** Says what is wrong with a URL, from its text alone; undefined if nothing is. */
  problemWith(url: string): string | undefined;
  /**
   * Like `problemWith`, but also resolves the host name. A name that cannot be resolved now is accepted, because `send`
   * checks again.
   */
  check(url: string): Promise<string | undefined>;
  /**
   * Sends a request and reads the whole response. Throws EgressFailure if there is no response or the URL is not
   * permitted.
   */
  send(request: EgressRequest): Promise<EgressResponse>;
  /**
   * Like `send`, but returns the body as a stream. The caller must read it to the end, or leave the iteration to close
   * it.
   */
  open(request: Omit<EgressRequest, 'excess'>): Promise<EgressStream>;
  /**
   * Opens a TCP connection to a server named by the operator, for other protocols such as SMTP. The caller closes it.
   */
  connect(target: EgressTarget): Promise<Socket>;
}

/** A server named by the operator, which may be in a private network. Never pass what a caller sent. */
interface EgressTarget {
  readonly host: string;
  readonly port: number;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** An HTTP request with its bounds. */
export interface EgressRequest {
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Limit for the whole exchange, from name resolution to the last byte of the response. */
  readonly timeoutMs: number;
  /** Limit for the response body. */
  readonly maxBytes: number;
  /** What to do with a larger response: fail, or cut it off at `maxBytes`. */
  readonly excess?: 'fail' | 'cut';
  readonly signal?: AbortSignal | undefined;
  /**
   * Set only for a URL named by the operator: it may be private and use plain http. Never set it for what a caller
   * sent.
   */
  readonly trusted?: boolean;
}

/** A response that was read completely; any status counts as a response. */
export interface EgressResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A response whose body is still arriving. */
interface EgressStream {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Throws EgressFailure if the connection breaks, or the body takes too long or is too large. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** What the egress depends on. */
interface EgressOptions {
  readonly clock: Clock;
  /** Permits requests to this machine, also over plain http. For tests: the host sets it only in conformance mode. */
  readonly allowLoopback: boolean;
  /** What the operator permits on purpose, over plain http too. */
  readonly allow?: readonly EgressRule[];
  readonly resolve?: Resolve;
}

/**
 * Resolves a host name to all its addresses. `trusted` names come from the operator and may be known only to this
 * machine (hosts file, mDNS).
 */
export type Resolve = (name: string, trusted: boolean) => Promise<readonly string[]>;

/** Why there was no response; callers map it to an error code and decide whether to retry. */
export type EgressReason = 'refused' | 'unreachable' | 'timeout' | 'too_large' | 'aborted';

/** Thrown when there was no response. The message never quotes the request, which may contain secrets. */
export class EgressFailure extends Error {
  override readonly name = 'EgressFailure';
  readonly reason: EgressReason;

  constructor(reason: EgressReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

const HEADER_BYTES_MAX = 16_384;
const URL_CHARACTERS_MAX = 2_048;
/** Timeout and number of tries for one DNS query. */
const QUERY_MS = 1_500;
const QUERY_TRIES = 2;
/** How long `check` waits for name resolution; a slower name is checked by `send`. */
const CHECK_MS = 1_000;
const HOW = 'the operator can permit it with CAPSTAN_EGRESS_ALLOW';
const NOT_PUBLIC = `resolves to an address that is not public (${HOW})`;
const NOT_SECURE = `must begin with https:// (${HOW})`;

/** Builds the egress; the host has one, shared by all callers. */
export function createEgress({ clock, allowLoopback, allow = [], resolve = resolver() }: EgressOptions): Egress {
  const policy = addressPolicy(allowLoopback, new EgressAllowList(allow), resolve);
  return {
    problemWith: (url) => policy.problemOf(url, false),

    async check(url) {
      const problem = policy.problemOf(url, false);
      if (problem) return problem;
      const target = new URL(url);
      const resolveAndCheck = async () =>
        policy.problemOfAddresses(target, await policy.addressesOf(hostOf(target), policy.isNamed(target)));
      return withDeadline(clock, CHECK_MS, undefined, resolveAndCheck).catch((error) => {
        if (error instanceof EgressFailure) return undefined;
        throw error;
      });
    },

    send: (request) =>
      withDeadline(clock, request.timeoutMs, request.signal, async (signal) => {
        const { status, headers, body } = await start(request, policy, signal);
        return { status, headers, body: await collect(body, request.maxBytes, request.excess) };
      }),

    async open(request) {
      const deadline = new Deadline(clock, request.timeoutMs, request.signal);
      try {
        const { status, headers, body } = await deadline.race(start(request, policy, deadline.signal));
        return { status, headers, body: streamBody(body, request.maxBytes, deadline) };
      } catch (error) {
        deadline.clear();
        throw error;
      }
    },

    connect: ({ host, port, timeoutMs, signal: outer }) =>
      withDeadline(clock, timeoutMs, outer, async (signal) => {
        const addresses = await policy.addressesOf(host, true);
        return dial({ host, port, signal, lookup: pinnedLookup(addresses) });
      }),
  };
}

/** Checks the URL, sends the request and resolves when the response headers have arrived. */
async function start(
  { trusted = false, ...request }: EgressRequest,
  policy: AddressPolicy,
  signal: AbortSignal,
): Promise<StartedResponse> {
  const problem = policy.problemOf(request.url, trusted);
  if (problem) throw new EgressFailure('refused', `The URL ${problem}.`);
  const target = new URL(request.url);
  const addresses = await policy.addressesOf(hostOf(target), trusted || policy.isNamed(target));
  const blocked = trusted ? undefined : policy.problemOfAddresses(target, addresses);
  if (blocked) throw new EgressFailure('refused', `The URL ${blocked}.`);
  return exchange(target, addresses, request, signal);
}

/** Decides which URLs and addresses may be reached. Trusted ones were named by the operator. */
interface AddressPolicy {
  /** What is wrong with a URL, from its text alone. */
  problemOf(url: string, trusted: boolean): string | undefined;
  /** Whether the operator permits the host of a URL by its name. */
  isNamed(url: URL): boolean;
  /** All addresses of a host; throws EgressFailure if there are none. */
  addressesOf(host: string, trusted: boolean): Promise<readonly string[]>;
  /** What is wrong with the addresses that the host of an untrusted URL resolved to. */
  problemOfAddresses(url: URL, addresses: readonly string[]): string | undefined;
}

function addressPolicy(allowLoopback: boolean, allow: EgressAllowList, resolve: Resolve): AddressPolicy {
  const isNamed = (url: URL): boolean => isWeb(url) && allow.names(url, hostOf(url));
  return {
    isNamed,
    problemOf(text, trusted) {
      if (text.length > URL_CHARACTERS_MAX) return `has more than ${URL_CHARACTERS_MAX} characters`;
      if (!URL.canParse(text)) return 'is not a URL';
      const url = new URL(text);
      if (url.username !== '' || url.password !== '') return 'must not carry a user or a password';
      if (trusted) return isWeb(url) ? undefined : 'must begin with https:// or http://';
      const host = hostOf(url);
      const isLoopback = isIP(host) ? reachOf(host) === 'loopback' : isLoopbackName(host);
      if (isLoopback && allowLoopback) return isWeb(url) ? undefined : 'must begin with https:// or http://';
      if (isWeb(url) && isAllowed(allow, url, host)) return undefined;
      if (url.protocol !== 'https:') return NOT_SECURE;
      if (isIP(host) ? reachOf(host) !== 'public' : isPrivateName(host)) return NOT_PUBLIC;
      return undefined;
    },

    async addressesOf(host, trusted) {
      if (isIP(host)) return [host];
      try {
        const addresses = await resolve(host, trusted);
        if (addresses.length > 0) return addresses;
      } catch (error) {
        throw new EgressFailure('unreachable', 'The host name could not be resolved.', { cause: error });
      }
      throw new EgressFailure('unreachable', 'The host name has no address.');
    },

    problemOfAddresses(url, addresses) {
      if (isNamed(url)) return undefined;
      const isPermitted = (address: string): boolean => {
        if (allow.hasAddress(url, address)) return true;
        const reach = reachOf(address);
        return reach === 'loopback' ? allowLoopback : reach === 'public' && url.protocol === 'https:';
      };
      return addresses.every(isPermitted) ? undefined : NOT_PUBLIC;
    },
  };
}

/** Whether the operator permits a URL, or might once its host name is resolved. */
function isAllowed(allow: EgressAllowList, url: URL, host: string): boolean {
  if (allow.names(url, host)) return true;
  return isIP(host) ? allow.hasAddress(url, host) : allow.mayLeadTo(url);
}

/**
 * Trusted names are resolved by the operating system. Other names go to the DNS servers directly, because the system's
 * resolver uses a small thread pool that one slow name could block.
 */
function resolver(): Resolve {
  const servers = new Resolver({ timeout: QUERY_MS, tries: QUERY_TRIES });
  return async (name, trusted) => {
    if (trusted) return (await lookup(name, { all: true })).map(({ address }) => address);
    if (isLoopbackName(name)) return ['127.0.0.1', '::1'];
    const answers = await Promise.allSettled([servers.resolve4(name), servers.resolve6(name)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    const [first] = answers;
    if (addresses.length === 0 && first.status === 'rejected') throw first.reason;
    return addresses;
  };
}

function isWeb({ protocol }: URL): boolean {
  return protocol === 'https:' || protocol === 'http:';
}

/** `URL` has already normalized unusual spellings of IP addresses; this removes brackets and trailing dots. */
function hostOf({ hostname }: URL): string {
  return withoutEnd(hostname.replace(/^\[|\]$/g, ''), /\./);
}

/** Runs an action and rejects on timeout or abort, even if the action ignores its signal. */
async function withDeadline<T>(
  clock: Clock,
  ms: number,
  outer: AbortSignal | undefined,
  action: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = new Deadline(clock, ms, outer);
  try {
    return await deadline.race(action(deadline.signal));
  } finally {
    deadline.clear();
  }
}

/**
 * Aborts its signal with an EgressFailure on timeout, or when the caller's signal is aborted, until `clear` is called.
 */
class Deadline {
  readonly #abort = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #onAbort: () => void;
  readonly #cancel: () => void;

  constructor(clock: Clock, ms: number, outer: AbortSignal | undefined) {
    const abortWith = (reason: EgressReason, message: string) => () =>
      this.#abort.abort(new EgressFailure(reason, message));
    this.#cancel = clock.after(ms, abortWith('timeout', `No response within ${ms} ms.`));
    this.#onAbort = abortWith('aborted', 'The request was cancelled.');
    this.#outer = outer;
    if (outer?.aborted) this.#onAbort();
    outer?.addEventListener('abort', this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  race<T>(work: Promise<T>): Promise<T> {
    return Promise.race([aborted(this.signal), work]);
  }

  clear(): void {
    this.#cancel();
    this.#outer?.removeEventListener('abort', this.#onAbort);
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

interface StartedResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: IncomingMessage;
}

/** Sends one request on its own connection, to one of the addresses that were checked. */
function exchange(
  url: URL,
  addresses: readonly string[],
  { method = 'GET', headers = {}, body }: EgressRequest,
  signal: AbortSignal,
): Promise<StartedResponse> {
  return new Promise((resolve, reject) => {
    // An import of either would load a second HTTP client with it, as the control socket says.
    const send = process.getBuiltinModule(url.protocol === 'https:' ? 'node:https' : 'node:http').request;
    const options = { method, headers, signal, agent: false, maxHeaderSize: HEADER_BYTES_MAX };
    const request = send(url, { ...options, lookup: pinnedLookup(addresses) }, (response) =>
      resolve({ status: response.statusCode!, headers: response.headers, body: response }),
    );
    request.on('error', (error) => reject(failureOf(error)));
    request.end(body);
  });
}

/** Resolves when the connection is established. The signal cancels only the wait, not the connection afterwards. */
function dial({ signal, ...options }: TcpNetConnectOpts & { readonly signal: AbortSignal }): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(options);
    const giveUp = (): void => void socket.destroy(signal.reason);
    signal.addEventListener('abort', giveUp, { once: true });
    socket.once('error', (error) => reject(failureOf(error)));
    socket.once('connect', () => {
      signal.removeEventListener('abort', giveUp);
      resolve(socket.removeAllListeners('error'));
    });
  });
}

function failureOf(error: Error): EgressFailure {
  if (error instanceof EgressFailure) return error;
  const { code } = error as NodeJS.ErrnoException;
  return new EgressFailure('unreachable', `No response${code ? ` (${code})` : ''}.`, { cause: error });
}

/**
 * A lookup function that returns the addresses that were checked. A second DNS query could return others (DNS
 * rebinding).
 */
function pinnedLookup(addresses: readonly string[]): LookupFunction {
  const known = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, { all }, done) => {
    if (all) done(null, known);
    else done(null, known[0]!.address, known[0]!.family);
  };
}

async function collect(response: IncomingMessage, maxBytes: number, excess = 'fail'): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytesLeft = maxBytes;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk.subarray(0, Math.max(0, bytesLeft)));
      bytesLeft -= chunk.length;
      if (bytesLeft < 0 && excess === 'cut') break;
      if (bytesLeft < 0) throw tooLarge(maxBytes);
    }
  } catch (error) {
    throw failureOf(error as Error);
  }
  return Buffer.concat(chunks);
}

/** Yields a body as it arrives; the deadline applies up to its last byte. */
async function* streamBody(
  response: IncomingMessage,
  maxBytes: number,
  deadline: Deadline,
): AsyncGenerator<Uint8Array> {
  let bytesLeft = maxBytes;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytesLeft -= chunk.length;
      if (bytesLeft < 0) throw tooLarge(maxBytes);
      yield chunk;
    }
  } catch (error) {
    throw deadline.signal.aborted ? deadline.signal.reason : failureOf(error as Error);
  } finally {
    deadline.clear();
  }
}

function tooLarge(maxBytes: number): EgressFailure {
  return new EgressFailure('too_large', `The response is larger than ${maxBytes} bytes.`);
}
