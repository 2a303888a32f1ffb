import type { Static } from 'typebox';
import type { RunEventDoc } from '../protocol/running/events.ts';
import { isTerminalStatus } from '../protocol/running/run-status.ts';
import type { RunSnapshot } from '../protocol/running/runs.ts';
import { checkProvided, type DiscoveryDocument } from './discovery.ts';
import { type Machine, platform } from './machine.ts';
import { type Messages, OPERATIONS, type Operation, type OperationName, type Operations } from './operations.ts';
import { PATIENT, PROMPT, type RetryPolicy } from './retry.ts';
import { isEndOfRun, resumed, untilRunEnds } from './streams.ts';
import { type Request, Transport } from './transport.ts';

export interface ClientOptions {
  /** Where the host is, as `http://127.0.0.1:3210`. */
  readonly url: string;
  readonly key?: string | undefined;
  readonly retry?: Partial<RetryPolicy>;
  readonly machine?: Machine;
}

/** An event as the log has it. */
export type RunEvent = Static<typeof RunEventDoc>;

/** What may be said with each call. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** One is made up where none is given, so that a retry is never a second time. */
  readonly idempotencyKey?: string;
  readonly retry?: Partial<RetryPolicy>;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface FollowOptions {
  readonly streamMode?: 'updates' | 'debug';
  /** The sequence of the last event that the caller has. */
  readonly after?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface WaitOptions {
  /** What to wait for; the end of the run where this is silent. */
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
type Answered<S extends { reply: unknown }> = S['reply'] extends Messages ? Messages : Promise<S['reply']>;

/** What an operation is called with: what stands in its path, what it takes, how. */
export type Args<K extends OperationName> = [
  ...PathArgs<Operations[K]['path']>,
  ...InputArgs<ShapeOf<Operations[K]>>,
  options?: CallOptions,
];
type Methods = { readonly [K in OperationName]: (...args: Args<K>) => Answered<ShapeOf<Operations[K]>> };

/** What a page calls its items: the protocol has names of its own for some. */
const ITEM_MEMBERS = ['items', 'proposals', 'goals'] as const;
type ItemMember = (typeof ITEM_MEMBERS)[number];

type ItemIn<R> = { [M in ItemMember]: R extends { readonly [N in M]: readonly (infer T)[] } ? T : never }[ItemMember];
type ItemOf<K extends OperationName> = ItemIn<ShapeOf<Operations[K]>['reply']>;
/** Operations that answer page by page. */
export type ListName = { [K in OperationName]: [ItemOf<K>] extends [never] ? never : K }[OperationName];

/** A method for each operation, and what takes more than one call. */
export interface Client extends Methods {
  readonly url: string;
  /** The discovery document, read once. */
  discover(): Promise<DiscoveryDocument>;
  /** Every item of a list, page after page. */
  each<K extends ListName>(name: K, ...args: Args<K>): AsyncGenerator<ItemOf<K>, void, undefined>;
  /** The events of a run, each once and in order, until the run ends; connections may come and go. */
  followRun(runId: string, options?: FollowOptions): AsyncGenerator<RunEvent, void, undefined>;
  /** The run, once it is as wanted. */
  waitForRun(runId: string, options?: WaitOptions): Promise<RunSnapshot>;
}

/** How long one question for news stays open. */
const POLL_S = 25;
const PAGES_MAX = 100_000;

/** Speaks to one host with one credential. */
export function createClient({ url, key, retry, machine = platform }: ClientOptions): Client {
  const transport = new Transport(url, key, machine);
  let discovered: Promise<DiscoveryDocument> | undefined;

  const methods = Object.fromEntries(
    Object.entries(OPERATIONS).map(([name, operation]) => [name, (...args: unknown[]) => call(operation, args)]),
  ) as unknown as Methods;

  const client: Client = { ...methods, url: transport.url, discover, each, followRun, waitForRun };
  return client;

  function discover(): Promise<DiscoveryDocument> {
    discovered ??= client.getCapabilities().catch((error) => {
      discovered = undefined;
      throw error;
    });
    return discovered;
  }

  function call(operation: Operation, args: readonly unknown[]): unknown {
    const request = requestOf(operation, args);
    if (operation.answers === 'messages') return stream(operation, request);
    return ask(operation, request);
  }

  async function ask(operation: Operation, request: Request): Promise<unknown> {
    await gate(operation);
    return operation.answers === 'bytes' ? transport.bytes(request) : transport.json(request);
  }

  async function* stream(operation: Operation, request: Request): Messages {
    await gate(operation);
    const [, runId] = /^\/v1\/runs\/([^/]+)\//.exec(request.path) ?? [];
    const isOver =
      runId === undefined ? async () => false : untilRunEnds(() => statusOf(decodeURIComponent(runId), request.signal));
    yield* resumed(transport, { ...request, lastEventId: request.headers?.['last-event-id'] }, isOver);
  }

  async function gate({ path, needs }: Operation): Promise<void> {
    const isOpen = needs === undefined && !path.startsWith('/v1/host/');
    if (!isOpen) checkProvided(await discover(), path, needs);
  }

  /** Puts the arguments where they belong: into the path, then what is sent along, then how. */
  function requestOf({ method, path, takes }: Operation, args: readonly unknown[]): Request {
    const rest = [...args];
    const filled = path.replace(/\{\w+\}/g, () => encodeURIComponent(String(rest.shift())));
    const body = takes === 'body' || takes === 'both' ? rest.shift() : undefined;
    const query = takes === 'query' || takes === 'both' ? rest.shift() : undefined;
    const options = (rest.shift() ?? {}) as CallOptions;
    return {
      method,
      path: filled,
      query: query as Record<string, unknown> | undefined,
      body,
      headers: {
        ...(method === 'GET' ? {} : { 'idempotency-key': options.idempotencyKey ?? machine.unique() }),
        ...options.headers,
      },
      signal: options.signal,
      retry: { ...PROMPT, ...retry, ...options.retry },
    };
  }

  async function* each<K extends ListName>(name: K, ...args: Args<K>): AsyncGenerator<ItemOf<K>, void, undefined> {
    const operation: Operation = OPERATIONS[name];
    const first = requestOf(operation, args);
    let cursor: string | undefined;
    for (let pages = 0; pages < PAGES_MAX; pages++) {
      const query = cursor === undefined ? first.query : { ...first.query, cursor };
      const page = (await ask(operation, { ...first, query })) as { nextCursor?: string } & Record<string, unknown>;
      const member = ITEM_MEMBERS.find((name) => Array.isArray(page[name]));
      yield* member === undefined ? [] : (page[member] as ItemOf<K>[]);
      if (page.nextCursor === undefined) return;
      cursor = page.nextCursor;
    }
  }

  async function* followRun(
    runId: string,
    { streamMode = 'updates', after, signal }: FollowOptions = {},
  ): AsyncGenerator<RunEvent, void, undefined> {
    const headers = after === undefined ? {} : { 'last-event-id': String(after) };
    let last = after ?? -1;
    for await (const { id, data } of client.streamRunEvents(runId, { streamMode }, { signal, headers })) {
      // What has no place in the log is no event of it.
      if (id === undefined) continue;
      const event = JSON.parse(data) as RunEvent;
      if (event.sequence <= last) continue;
      last = event.sequence;
      yield event;
      if (isEndOfRun(event.type)) return;
    }
  }

  async function waitForRun(
    runId: string,
    { until = ({ status }) => isTerminalStatus(status), signal }: WaitOptions = {},
  ): Promise<RunSnapshot> {
    const patiently: CallOptions = { signal, retry: PATIENT };
    let lastSequence: number | undefined;
    for (;;) {
      const snapshot = await client.getRun(runId, patiently);
      if (until(snapshot) || isTerminalStatus(snapshot.status)) return snapshot;
      const query = { timeout: POLL_S, ...(lastSequence === undefined ? {} : { lastSequence }) };
      const { events } = await client.pollRunEvents(runId, query, patiently);
      lastSequence = events.at(-1)?.sequence ?? lastSequence;
    }
  }

  async function statusOf(runId: string, signal: AbortSignal | undefined): Promise<string> {
    return (await client.getRun(runId, { signal })).status;
  }
}
