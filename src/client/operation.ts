import type { ServerSentEvent } from './server-sent-events.ts';

/** The HTTP methods that operations use. */
type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The types of an operation: its query, body and reply. */
interface Shape {
  readonly query?: object;
  readonly body?: object;
  readonly reply: unknown;
}

/** The reply of an operation that streams server-sent events. */
export type Messages = AsyncGenerator<ServerSentEvent, void, undefined>;
/** The reply of an operation that streams bytes, such as an audit export. */
export type Bytes = ReadableStream<Uint8Array>;

/** One row of the operation table: how to call an operation, and its types. */
export interface Operation<P extends string = string, S extends Shape = Shape> {
  readonly method: Method;
  readonly path: P;
  /** Which inputs follow the path parameters in the argument list. */
  readonly takes?: 'query' | 'body' | 'both' | undefined;
  /** How the reply is read; JSON when undefined. */
  readonly answers?: 'messages' | 'bytes' | undefined;
  /** The path in the discovery document that shows support; undefined for operations that every host has. */
  readonly needs?: string | undefined;
  /** Carries the types only; it is never set. */
  readonly shape?: S;
}

/** Types do not exist at run time, so a row repeats what the code must know; this type checks that it is right. */
type OperationDetails<S extends Shape> = { readonly needs?: string } & ('body' extends keyof S
  ? { readonly takes: 'query' extends keyof S ? 'both' : 'body' }
  : 'query' extends keyof S
    ? { readonly takes: 'query' }
    : { readonly takes?: undefined }) &
  (S['reply'] extends Messages
    ? { readonly answers: 'messages' }
    : S['reply'] extends Bytes
      ? { readonly answers: 'bytes' }
      : { readonly answers?: undefined });

/** Builds a row of the operation table; the first call fixes the types, the second gives method and path. */
export const operation =
  <S extends Shape>() =>
  <const P extends `/${string}`>(
    method: Method,
    path: P,
    ...[details]: Record<never, never> extends OperationDetails<S>
      ? [details?: OperationDetails<S>]
      : [details: OperationDetails<S>]
  ): Operation<P, S> => ({ method, path, ...details });

/** One page of a list; `nextCursor` is missing on the last page. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor?: string;
}

/** The query parameters of every paged list. */
export interface PageQuery {
  readonly limit?: number;
  readonly cursor?: string;
}

/** The path prefix of the protocol. */
export const V1 = '/v1';
/** The path prefix of operations that only Capstan hosts have. */
export const HOST = '/v1/host/capstan';
