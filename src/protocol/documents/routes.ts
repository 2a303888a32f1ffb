import type { TSchema } from 'typebox';
import type { ErrorCode } from '../errors.ts';
import type { Scope } from '../trust/scopes.ts';

/** A successful response: its schema, or its media type where it is no JSON, or `nothing` for an empty body. */
export type ReplyContract = TSchema | string;

/** The static description of an operation, from which the API documents are generated. */
export interface RouteContract {
  readonly operationId: string;
  readonly summary: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path with `{name}` for parameters; colon verbs as in the protocol, such as `/v1/runs/{runId}:fork`. */
  readonly path: string;
  /** Aliases under which the operation is also served; the documents list only `path`. */
  readonly alsoAt?: readonly string[];
  /** The required scope; `any` for any valid credential, `public` for none. */
  readonly scope: Scope | 'any' | 'public';
  readonly params?: TSchema;
  readonly query?: TSchema;
  readonly body?: TSchema;
  /** Status for a body that does not match the schema, if not 400. */
  readonly invalidBodyStatus?: 422;
  /** Error code for such a body, if not `validation_error`. */
  readonly invalidBodyCode?: ErrorCode;
  /** Whether the body may be omitted. */
  readonly bodyOptional?: boolean;
  /** Whether the handler gets the bytes of the body as they were sent, of whatever media type. */
  readonly isRawBody?: boolean;
  /**
   * Whether no reply is kept for retries: the reply is a credential and repeating the request does no harm, or the
   * handler recognises retries by itself.
   */
  readonly isUnrecorded?: boolean;
  /** The successful responses by status; several where the caller's `Accept` decides. */
  readonly replies: Readonly<Record<number, ReplyContract | readonly ReplyContract[]>>;
  /** Error statuses to list in the documents, besides those of every operation. */
  readonly refusals?: readonly number[];
}
