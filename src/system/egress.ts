import { lookup, Resolver } from 'node:dns/promises';
import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { connect, isIP, type LookupFunction, type Socket, type TcpNetConnectOpts } from 'node:net';
import { isInsideName, isLoopbackName, reachOf } from './addresses.ts';
import type { Clock } from './clock.ts';

/**
 * The one way out to the network for addresses that callers, workflows or configuration name.
 *
 * E1. A name is resolved once for each request; every address it has is judged, and only those are connected to.
 * E2. Redirects are answers like any other: nobody is led from a judged address to another one.
 * E3. Time and size of an exchange are bounded.
 */
export interface Egress {
  /** What is wrong with an address by its looks alone. */
  problemWith(url: string): string | undefined;
  /** Also looks its name up. A name that cannot be resolved now is no problem yet: sending judges it again. */
  check(url: string): Promise<string | undefined>;
  /** Throws EgressFailure when there is no answer, or when the address may not be asked. */
  send(request: EgressRequest): Promise<EgressResponse>;
  /** The same for an answer that comes bit by bit. Its body is to be read, or left by ending the iteration. */
  open(request: Omit<EgressRequest, 'excess'>): Promise<EgressStream>;
  /** A connection to a server of the operator that speaks something else. It is the caller's to end. */
  connect(target: EgressTarget): Promise<Socket>;
}

/** A server that the operator named: it may be inside. Never what a caller sent. */
export interface EgressTarget {
  readonly host: string;
  readonly port: number;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface EgressRequest {
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** For everything, from looking the name up to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** What to do with an answer that is longer: give it up, or take what fits. */
  readonly excess?: 'fail' | 'cut';
  readonly signal?: AbortSignal | undefined;
  /** The operator named this address: it may be inside, and plain http. Never for what a caller sent. */
  readonly trusted?: boolean;
}

export interface EgressResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface EgressStream {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Throws EgressFailure where it breaks off, takes too long or is too large. */
  readonly body: AsyncIterable<Uint8Array>;
}

export interface EgressOptions {
  readonly clock: Clock;
  /** Lets this machine itself be reached, over plain http too. For tests. */
  readonly allowLoopback: boolean;
  readonly resolve?: Resolve;
}

/** All addresses of a name. Names that the operator gave may mean something only to this machine. */
export type Resolve = (name: string, trusted: boolean) => Promise<readonly string[]>;

export type EgressReason = 'refused' | 'unreachable' | 'timeout' | 'too_large' | 'aborted';

/** There was no answer. `message` never repeats what was sent. */
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
/** How long a name server has to answer, and how often it is asked. */
const QUERY_MS = 1_500;
const QUERY_TRIES = 2;
/** How long a check waits for a name; what takes longer is judged when something is sent. */
const CHECK_MS = 1_000;
const NOT_PUBLIC = 'points to an address that is not public';

export function createEgress({ clock, allowLoopback, resolve = resolver() }: EgressOptions): Egress {
  return {
    problemWith: (url) => problemOf(url, false),

    async check(url) {
      const problem = problemOf(url, false);
      if (problem) return problem;
      const target = new URL(url);
      const look = async () => problemOfAddresses(target, await addressesOf(hostOf(target), false));
      return withDeadline(clock, CHECK_MS, undefined, look).catch((error) => {
        if (error instanceof EgressFailure) return undefined;
        throw error;
      });
    },

    send: (request) =>
      withDeadline(clock, request.timeoutMs, request.signal, async (signal) => {
        const { status, headers, body } = await begin(request, signal);
        return { status, headers, body: await collect(body, request.maxBytes, request.excess) };
      }),

    async open(request) {
      const deadline = new Deadline(clock, request.timeoutMs, request.signal);
      try {
        const { status, headers, body } = await deadline.race(begin(request, deadline.signal));
        return { status, headers, body: passOn(body, request.maxBytes, deadline) };
      } catch (error) {
        deadline.lift();
        throw error;
      }
    },

    connect: ({ host, port, timeoutMs, signal: outer }) =>
      withDeadline(clock, timeoutMs, outer, async (signal) => {
        const addresses = await addressesOf(host, true);
        return dial({ host, port, signal, lookup: answering(addresses) });
      }),
  };

  /** Sends a request to where it may go; the answer has begun when this settles. */
  async function begin({ trusted = false, ...request }: EgressRequest, signal: AbortSignal): Promise<BegunResponse> {
    const problem = problemOf(request.url, trusted);
    if (problem) throw new EgressFailure('refused', `The address ${problem}.`);
    const target = new URL(request.url);
    const addresses = await addressesOf(hostOf(target), trusted);
    const inside = trusted ? undefined : problemOfAddresses(target, addresses);
    if (inside) throw new EgressFailure('refused', `The address ${inside}.`);
    return exchange(target, addresses, request, signal);
  }

  function problemOf(text: string, trusted: boolean): string | undefined {
    if (text.length > URL_CHARACTERS_MAX) return `has more than ${URL_CHARACTERS_MAX} characters`;
    if (!URL.canParse(text)) return 'is not a URL';
    const url = new URL(text);
    if (url.username !== '' || url.password !== '') return 'must not carry a user or a password';
    if (trusted) return isWeb(url) ? undefined : 'must begin with https:// or http://';
    const host = hostOf(url);
    const isHere = isIP(host) ? reachOf(host) === 'loopback' : isLoopbackName(host);
    if (isHere && allowLoopback) return isWeb(url) ? undefined : 'must begin with https:// or http://';
    if (url.protocol !== 'https:') return 'must begin with https://';
    if (isIP(host) ? reachOf(host) !== 'public' : isInsideName(host)) return NOT_PUBLIC;
    return undefined;
  }

  async function addressesOf(host: string, trusted: boolean): Promise<readonly string[]> {
    if (isIP(host)) return [host];
    try {
      const addresses = await resolve(host, trusted);
      if (addresses.length > 0) return addresses;
    } catch (error) {
      throw new EgressFailure('unreachable', 'The name cannot be resolved.', { cause: error });
    }
    throw new EgressFailure('unreachable', 'The name has no address.');
  }

  function problemOfAddresses({ protocol }: URL, addresses: readonly string[]): string | undefined {
    const isFit = (address: string): boolean => {
      const reach = reachOf(address);
      return reach === 'loopback' ? allowLoopback : reach === 'public' && protocol === 'https:';
    };
    return addresses.every(isFit) ? undefined : NOT_PUBLIC;
  }
}

/**
 * The operator's names are looked up as the machine does it. Strangers' names are asked of the name servers alone:
 * that needs none of the few threads which the machine's way takes, so a name that is slow to resolve slows no other.
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

/** URL has brought numbers in odd spellings into one form by now; brackets and final dots are only notation. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '');
}

/** Ends what takes too long, or is no longer wanted, whatever it is waiting for. */
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
    deadline.lift();
  }
}

/** Aborts its signal, with the reason why, when the time is up or the caller has lost interest; until it is lifted. */
class Deadline {
  readonly #abort = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #onAbort: () => void;
  readonly #cancel: () => void;

  constructor(clock: Clock, ms: number, outer: AbortSignal | undefined) {
    const giveUp = (reason: EgressReason, message: string) => () =>
      this.#abort.abort(new EgressFailure(reason, message));
    this.#cancel = clock.after(ms, giveUp('timeout', `There was no answer within ${ms} ms.`));
    this.#onAbort = giveUp('aborted', 'The request is no longer wanted.');
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

  lift(): void {
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

interface BegunResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: IncomingMessage;
}

/** One request on a connection of its own, to one of the addresses that were judged. */
function exchange(
  url: URL,
  addresses: readonly string[],
  { method = 'GET', headers = {}, body }: EgressRequest,
  signal: AbortSignal,
): Promise<BegunResponse> {
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? requestHttps : requestHttp;
    const options = { method, headers, signal, agent: false, maxHeaderSize: HEADER_BYTES_MAX };
    const request = send(url, { ...options, lookup: answering(addresses) }, (response) =>
      resolve({ status: response.statusCode!, headers: response.headers, body: response }),
    );
    request.on('error', (error) => reject(failureOf(error)));
    request.end(body);
  });
}

/** Settles when the connection is there. Its signal ends only the wait for that. */
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
  return new EgressFailure('unreachable', `There was no answer${code ? ` (${code})` : ''}.`, { cause: error });
}

/** Stands in for a second look-up, which might say something else than the one that was judged. */
function answering(addresses: readonly string[]): LookupFunction {
  const known = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, { all }, done) => {
    if (all) done(null, known);
    else done(null, known[0]!.address, known[0]!.family);
  };
}

async function collect(response: IncomingMessage, maxBytes: number, excess = 'fail'): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let room = maxBytes;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk.subarray(0, Math.max(0, room)));
      room -= chunk.length;
      if (room < 0 && excess === 'cut') break;
      if (room < 0) throw tooLarge(maxBytes);
    }
  } catch (error) {
    throw failureOf(error as Error);
  }
  return Buffer.concat(chunks);
}

/** Hands a body on as it comes. The deadline holds to its last byte. */
async function* passOn(response: IncomingMessage, maxBytes: number, deadline: Deadline): AsyncGenerator<Uint8Array> {
  let room = maxBytes;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      room -= chunk.length;
      if (room < 0) throw tooLarge(maxBytes);
      yield chunk;
    }
  } catch (error) {
    throw deadline.signal.aborted ? deadline.signal.reason : failureOf(error as Error);
  } finally {
    deadline.lift();
  }
}

function tooLarge(maxBytes: number): EgressFailure {
  return new EgressFailure('too_large', `The answer has more than ${maxBytes} bytes.`);
}
