import { CONSOLE_HEADER } from '../protocol/operations/console-header.ts';
import { isTerminalStatus } from '../protocol/running/run-status.ts';
import type { RunSnapshot } from '../protocol/running/runs.ts';
import { addressOf, type DiscoveryDocument, requireSupport } from './discovery.ts';
import { type Machine, platform } from './machine.ts';
import { type Messages, OPERATIONS, type Operation, type OperationName, type Operations } from './operations.ts';
import { CALL_RETRY, RESTART_RETRY, type RetryPolicy } from './retry.ts';
import type { RunEvent } from './run-event.ts';
import { isEndOfRun, resumableStream, untilRunEnds } from './streams.ts';
import { type Request, Transport } from './transport.ts';

/** How to reach and authenticate with one host. */
export interface ClientOptions {
  /** The base URL of the host, for example `http://127.0.0.1:3210`. */
  readonly url: string;
  /** An API key, or a token of the configured identity provider. */
  readonly key?: string | undefined;
  /** Whether the session of the browser takes the place of a key: for pages that the host itself serves. */
  readonly isSession?: boolean;
  /** Overrides parts of the default retry policy for every call. */
  readonly retry?: Partial<RetryPolicy>;
  /** Replaces `fetch`, clock and randomness, for tests. */
  readonly machine?: Machine;
}

/** Options that every operation accepts as its last argument. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Generated when missing, so that retries of a write never execute it twice. */
  readonly idempotencyKey?: string;
  readonly retry?: Partial<RetryPolicy>;
  readonly headers?: Readonly<Record<string, string>>;
  /** For streams: called once the host has begun to send what happens from now on. What was read before may be out of date. */
  readonly onOpen?: () => void;
}

/** Options of `followRun`. */
export interface FollowOptions {
  readonly streamMode?: 'updates' | 'debug';
  /** The sequence of the last event that the caller already has. */
  readonly after?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Options of `waitForRun`. */
export interface WaitOptions {
  /** The condition to wait for; the default is the end of the run. */
  readonly until?: (snapshot: RunSnapshot) => boolean;
  readonly signal?: AbortSignal | undefined;
}

type PathArgs<P extends string> = P extends `${string}{${string}}${infer Rest}` ? [string, ...PathArgs<Rest>] : [];
type Input<S, K extends string> = K extends keyof S
  ? Record<never, never> extends Pick<S, K>
    ? [input?: S[K]]
    : [input: S[K]]
  : [];
type InputArgs<S> = [...Input<S, 'body'>, ...Input<S, 'query'>];
type ShapeOf<O> = O extends Operation<string, infer S> ? S : never;
type Reply<S extends { reply: unknown }> = S['reply'] extends Messages ? Messages : Promise<S['reply']>;

/** The arguments of an operation: path parameters, then body and query, then call options. */
export type Args<K extends OperationName> = [
  ...PathArgs<Operations[K]['path']>,
  ...InputArgs<ShapeOf<Operations[K]>>,
  options?: CallOptions,
];
type Methods = { readonly [K in OperationName]: (...args: Args<K>) => Reply<ShapeOf<Operations[K]>> };

/** The property that holds the items of a page; the protocol names it after the resource in some replies. */
const ITEM_PROPERTIES = ['items', 'proposals', 'goals'] as const;
type ItemProperty = (typeof ITEM_PROPERTIES)[number];

type ItemIn<R> = {
  [M in ItemProperty]: R extends { readonly [N in M]: readonly (infer T)[] } ? T : never;
}[ItemProperty];
type ItemOf<K extends OperationName> = ItemIn<ShapeOf<Operations[K]>['reply']>;
/** The names of the operations that return pages. */
export type ListName = { [K in OperationName]: [ItemOf<K>] extends [never] ? never : K }[OperationName];

/** A client of one host: a method for each operation, and helpers that combine several calls. */
export interface Client extends Methods {
  readonly url: string;
  /** Returns the discovery document; it is fetched once. */
  discover(): Promise<DiscoveryDocument>;
  /** Iterates over all items of a list operation and fetches page after page. */
  each<K extends ListName>(name: K, ...args: Args<K>): AsyncGenerator<ItemOf<K>, void, undefined>;
  /** Yields the events of a run, each once and in order, until the run ends; reconnects when a connection breaks. */
  followRun(runId: string, options?: FollowOptions): AsyncGenerator<RunEvent, void, undefined>;
  /** Resolves with the run snapshot as soon as the condition holds or the run has ended. */
  waitForRun(runId: string, options?: WaitOptions): Promise<RunSnapshot>;
}

/** How long the host holds one long poll open. */
const POLL_S = 25;
const PAGES_MAX = 100_000;

/** Creates a client for one host and one credential. */
export function createClient({ url, key, isSession = false, retry, machine = platform }: ClientOptions): Client {
  const caller = new OperationCaller(new Transport(url, credentialHeaders(key, isSession), machine), retry);
  const methods = Object.fromEntries(
    Object.entries(OPERATIONS).map(([name, operation]) => [name, (...args: unknown[]) => caller.call(operation, args)]),
  ) as unknown as Methods;
  const client: Client = {
    ...methods,
    url: caller.url,
    discover: () => caller.discover(),
    each: (name, ...args) => eachItem(caller, name, args),
    followRun: (runId, options) => followRun(client, runId, options),
    waitForRun: (runId, options) => waitForRun(client, runId, options),
  };
  return client;
}

/** The browser adds the cookie by itself; the header shows that a page of the host sent the request. */
function credentialHeaders(key: string | undefined, isSession: boolean): Readonly<Record<string, string>> {
  if (key !== undefined) return { authorization: `Bearer ${key}` };
  return isSession ? { [CONSOLE_HEADER]: '1' } : {};
}

/** Turns method calls into requests, after checking that the host supports the operation. */
class OperationCaller {
  readonly #transport: Transport;
  readonly #retry: Partial<RetryPolicy> | undefined;
  #discovery: Promise<DiscoveryDocument> | undefined;

  constructor(transport: Transport, retry: Partial<RetryPolicy> | undefined) {
    this.#transport = transport;
    this.#retry = retry;
  }

  get url(): string {
    return this.#transport.url;
  }

  discover(): Promise<DiscoveryDocument> {
    this.#discovery ??= (this.call(OPERATIONS.getCapabilities, []) as Promise<DiscoveryDocument>).catch((error) => {
      this.#discovery = undefined;
      throw error;
    });
    return this.#discovery;
  }

  call(operation: Operation, args: readonly unknown[]): unknown {
    const request = this.requestOf(operation, args);
    if (operation.answers === 'messages') return this.#stream(operation, request);
    return this.send(operation, request);
  }

  async send(operation: Operation, request: Request): Promise<unknown> {
    const addressed = await this.#addressed(operation, request);
    return operation.answers === 'bytes' ? this.#transport.bytes(addressed) : this.#transport.json(addressed);
  }

  /** Distributes the arguments over path, body, query and options. */
  requestOf({ method, path, takes }: Operation, args: readonly unknown[]): Request {
    const rest = [...args];
    const filledPath = path.replace(/\{\w+\}/g, () => encodeURIComponent(String(rest.shift())));
    const body = takes === 'body' || takes === 'both' ? rest.shift() : undefined;
    const query = takes === 'query' || takes === 'both' ? rest.shift() : undefined;
    const options = (rest.shift() ?? {}) as CallOptions;
    const { machine } = this.#transport;
    return {
      method,
      path: filledPath,
      query: query as Record<string, unknown> | undefined,
      body,
      headers: {
        ...(method === 'GET' ? {} : { 'idempotency-key': options.idempotencyKey ?? machine.unique() }),
        ...options.headers,
      },
      signal: options.signal,
      onOpen: options.onOpen,
      retry: { ...CALL_RETRY, ...this.#retry, ...options.retry },
    };
  }

  async *#stream(operation: Operation, request: Request): Messages {
    const addressed = await this.#addressed(operation, request);
    const [, runId] = /^\/v1\/runs\/([^/]+)\//.exec(request.path) ?? [];
    const isFinished =
      runId === undefined
        ? async () => false
        : untilRunEnds(() => this.#statusOf(decodeURIComponent(runId), request.signal));
    const lastEventId = request.headers?.['last-event-id'];
    yield* resumableStream(this.#transport, { ...addressed, lastEventId }, isFinished);
  }

  /** The request with the address that this host has for it. Throws if the host does not support the operation. */
  async #addressed({ path, needs }: Operation, request: Request): Promise<Request> {
    const isOnEveryHost = needs === undefined && !path.startsWith('/v1/host/');
    if (isOnEveryHost) return request;
    const document = await this.discover();
    requireSupport(document, path, needs);
    return { ...request, path: addressOf(document, request.path) };
  }

  async #statusOf(runId: string, signal: AbortSignal | undefined): Promise<string> {
    const run = (await this.call(OPERATIONS.getRun, [runId, { signal }])) as RunSnapshot;
    return run.status;
  }
}

async function* eachItem<K extends ListName>(
  caller: OperationCaller,
  name: K,
  args: Args<K>,
): AsyncGenerator<ItemOf<K>, void, undefined> {
  const operation: Operation = OPERATIONS[name];
  const first = caller.requestOf(operation, args);
  let cursor: string | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const query = cursor === undefined ? first.query : { ...first.query, cursor };
    const page = (await caller.send(operation, { ...first, query })) as { nextCursor?: string } & Record<
      string,
      unknown
    >;
    const property = ITEM_PROPERTIES.find((candidate) => Array.isArray(page[candidate]));
    yield* property === undefined ? [] : (page[property] as ItemOf<K>[]);
    if (page.nextCursor === undefined) return;
    cursor = page.nextCursor;
  }
}

async function* followRun(
  client: Client,
  runId: string,
  { streamMode = 'updates', after, signal }: FollowOptions = {},
): AsyncGenerator<RunEvent, void, undefined> {
  const headers = after === undefined ? {} : { 'last-event-id': String(after) };
  let last = after ?? -1;
  for await (const { id, data } of client.streamRunEvents(runId, { streamMode }, { signal, headers })) {
    // Messages without an id, such as model output in progress, are not in the event log.
    if (id === undefined) continue;
    const event = JSON.parse(data) as RunEvent;
    if (event.sequence <= last) continue;
    last = event.sequence;
    yield event;
    if (isEndOfRun(event.type)) return;
  }
}

async function waitForRun(
  client: Client,
  runId: string,
  { until = ({ status }) => isTerminalStatus(status), signal }: WaitOptions = {},
): Promise<RunSnapshot> {
  const options: CallOptions = { signal, retry: RESTART_RETRY };
  let lastSequence: number | undefined;
  for (;;) {
    const snapshot = await client.getRun(runId, options);
    if (until(snapshot) || isTerminalStatus(snapshot.status)) return snapshot;
    const query = { timeout: POLL_S, ...(lastSequence === undefined ? {} : { lastSequence }) };
    const { events } = await client.pollRunEvents(runId, query, options);
    lastSequence = events.at(-1)?.sequence ?? lastSequence;
  }
}
