import type { ServerSentEvent } from './server-sent-events.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** What an operation takes besides its path, and what it answers. */
export interface Shape {
  readonly query?: object;
  readonly body?: object;
  readonly reply: unknown;
}

/** A reply that is no document: messages as they come, or bytes that may be many. */
export type Messages = AsyncGenerator<ServerSentEvent, void, undefined>;
export type Bytes = ReadableStream<Uint8Array>;

export interface Operation<P extends string = string, S extends Shape = Shape> {
  readonly method: Method;
  readonly path: P;
  readonly takes?: 'query' | 'body' | 'both' | undefined;
  readonly answers?: 'messages' | 'bytes' | undefined;
  /** Where in the discovery document a host shows that it serves this; undefined for what every host serves. */
  readonly needs?: string | undefined;
  /** For the compiler alone; it has no value. */
  readonly shape?: S;
}

/** Shapes are gone when the program runs: what it has to know of them is said again, and checked here. */
type More<S extends Shape> = { readonly needs?: string } & ('body' extends keyof S
  ? { readonly takes: 'query' extends keyof S ? 'both' : 'body' }
  : 'query' extends keyof S
    ? { readonly takes: 'query' }
    : { readonly takes?: undefined }) &
  (S['reply'] extends Messages
    ? { readonly answers: 'messages' }
    : S['reply'] extends Bytes
      ? { readonly answers: 'bytes' }
      : { readonly answers?: undefined });

export const operation =
  <S extends Shape>() =>
  <const P extends `/${string}`>(
    method: Method,
    path: P,
    ...[more]: Record<never, never> extends More<S> ? [more?: More<S>] : [more: More<S>]
  ): Operation<P, S> => ({ method, path, ...more });

export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor?: string;
}

export interface PageQuery {
  readonly limit?: number;
  readonly cursor?: string;
}

export const V1 = '/v1';
export const HOST = '/v1/host/capstan';
