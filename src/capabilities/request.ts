import type { Static, TSchema } from 'typebox';
import type { RouteContract } from '../protocol/documents/routes.ts';
import { isRefusal, type Refusal } from '../protocol/errors.ts';
import type { Role, Scope } from '../protocol/trust/scopes.ts';
import { type Change, type Decide, withResult } from '../runtime/change.ts';
import type { Subject } from '../runtime/run-row.ts';

/** The roles and groups that a token names, also those that mean nothing to this host but may be named by a workflow. */
interface ClaimedNames {
  readonly roles: ReadonlySet<string>;
  readonly groups: ReadonlySet<string>;
}

/** Who is calling, as the credential says; no part of it comes from a request body. */
export interface Caller {
  readonly subject: Subject;
  readonly scopes: ReadonlySet<Scope>;
  /** Absent for a key that was given scopes instead of a role. */
  readonly role?: Role | undefined;
  /** What a token says about its bearer; absent for an API key. */
  readonly claimed?: ClaimedNames | undefined;
  /** The pool of workers that the key is bound to. */
  readonly pool?: string | undefined;
  /** Id of the API key; for a bearer token the same as the principal. */
  readonly keyId: string;
  /** Test keys may use mock providers, and see only what test keys created. */
  readonly isTest: boolean;
}

/**
 * A request that has passed the edge: authenticated, authorised and validated against the route's schemas. Some members
 * are looked up only when they are asked for, so a spread would lose them: name those that are handed on.
 */
export interface Request<P = unknown, Q = unknown, B = unknown> {
  readonly caller: Caller;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** The body as it was sent, for routes that store it byte for byte. */
  readonly bodyText: string;
  /** A header by its name in lower case. */
  header(name: string): string | undefined;
  /** All headers, by their names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Origin under which callers reach this host, for absolute URLs. */
  readonly origin: string;
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
}

/**
 * Pieces of a stream that need not be waited for: whoever sends them is told when there are some, and takes them. A
 * thousand readers that wait keep no promises, and get an event without one.
 */
export interface LivePieces extends AsyncIterator<string, undefined> {
  /** Tells once, in the reader's turn, that there may be something to take or that the end has come. */
  whenMore(tell: () => void): void;
  /** What can be taken at once; undefined if the next piece, or the end, has to be waited for. */
  takeNow(): string | undefined;
}

/** What a route answers with when it does what was asked. */
export interface Reply {
  readonly status: number;
  readonly headers?: Record<string, string>;
  /** A JSON value, or `text` that is JSON already, or a `stream` whose pieces are sent as they come. */
  readonly body?: unknown;
  readonly text?: string;
  readonly stream?: (signal: AbortSignal) => AsyncIterable<string>;
  /** The stream waits for its turn by itself, before it makes a piece; otherwise each piece waits for one. */
  readonly takesTurns?: boolean;
}

/** A change that the edge performs, together with the idempotency record of the reply that it results in. */
export interface Transaction {
  readonly transaction: Decide<Reply>;
  /** It only adds something beside the resource, so it need not wait for other changes of the resource. */
  readonly isAdditive?: boolean;
}

/** What a route handler returns. */
export type Answer = Reply | Refusal | Transaction;

/** Who is calling and which resource the path names: all that a route may look at before the body. */
export type About<P = unknown> = Pick<Request<P>, 'caller' | 'params'>;

/** An operation of the API: its contract (path, scope, schemas) and its handler. */
export interface Route<S> extends RouteContract {
  /** Refuses requests about a resource that does not exist, before their body is validated. */
  before?(request: About, services: S): Promise<Refusal | undefined>;
  /** Refuses a body for a reason that takes precedence over the rest of its schema. */
  first?(body: unknown): Refusal | undefined;
  handle(request: Request, services: S): Answer | Promise<Answer>;
  /**
   * What the caller gets in place of the reply, once that is committed: the result of what was accepted. A retry with the
   * same idempotency key waits for the same.
   */
  followUp?(request: Request, accepted: unknown, services: S): Promise<Reply | Refusal>;
}

/** A route together with the services that its handler uses: ready to be mounted. */
export interface BoundRoute extends RouteContract {
  before?(request: About): Promise<Refusal | undefined>;
  first?(body: unknown): Refusal | undefined;
  handle(request: Request): Answer | Promise<Answer>;
  followUp?(request: Request, accepted: unknown): Promise<Reply | Refusal>;
}

type Of<T> = T extends TSchema ? Static<T> : undefined;

/** Defines a route for handlers that use the services `S`; the handler's types follow from the schemas. */
export function route<S>() {
  return <
    P extends TSchema | undefined = undefined,
    Q extends TSchema | undefined = undefined,
    B extends TSchema | undefined = undefined,
  >(
    definition: Omit<RouteContract, 'params' | 'query' | 'body'> & {
      readonly params?: P;
      readonly query?: Q;
      readonly body?: B;
      before?(request: About<Of<P>>, services: S): Promise<Refusal | undefined>;
      first?(body: unknown): Refusal | undefined;
      handle(request: Request<Of<P>, Of<Q>, Of<B>>, services: S): Answer | Promise<Answer>;
      followUp?(request: Request<Of<P>, Of<Q>, Of<B>>, accepted: unknown, services: S): Promise<Reply | Refusal>;
    },
  ): Route<S> => definition as Route<S>; // The edge has validated params, query and body against the schemas.
}

/** Gives routes the services that their handlers use. */
export function bindRoutes<S>(routes: readonly Route<S>[], services: S): BoundRoute[] {
  return routes.map(({ before, handle, followUp, ...contract }) => ({
    ...contract,
    ...(before ? { before: (about: About) => before(about, services) } : {}),
    handle: (request: Request) => handle(request, services),
    ...(followUp ? { followUp: (request: Request, accepted: unknown) => followUp(request, accepted, services) } : {}),
  }));
}

/** A JSON reply. */
export function reply(status: number, body: unknown, headers?: Record<string, string>): Reply {
  return headers ? { status, body, headers } : { status, body };
}

/** The reply to a request whose result has no body. */
export const NO_CONTENT: Reply = { status: 204 };

/** A JSON reply with the outcome, or the refusal that it is. */
export function answer(status: number, outcome: object | Refusal): Reply | Refusal {
  return isRefusal(outcome) ? outcome : reply(status, outcome);
}

/**
 * Answers a request with a change: the edge performs it, stores the reply under the caller's idempotency key in the
 * same unit, and sends the reply once both are committed.
 */
export function transact<T>(
  decide: Decide<T>,
  show: (result: T) => Reply,
  options: Pick<Transaction, 'isAdditive'> = {},
): Transaction {
  return {
    ...options,
    transaction: async (): Promise<Change<Reply> | Refusal> => {
      const change = await decide();
      return isRefusal(change) ? change : withResult(change, show);
    },
  };
}
