import type { TSchema } from 'typebox';
import type { ErrorCode } from '../errors.ts';
import type { Scope } from '../trust/scopes.ts';

/** What is known of an operation without running it: the contract, from which the API documents are made. */
export interface RouteContract {
  readonly operationId: string;
  readonly summary: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `{name}` for parameters; colon verbs as the protocol writes them. */
  readonly path: string;
  /** Other paths under which the same is served; the documents name the first alone. */
  readonly alsoAt?: readonly string[];
  /** The scope it takes; `any` where a credential will do, and `public` where none is needed. */
  readonly scope: Scope | 'any' | 'public';
  readonly params?: TSchema;
  readonly query?: TSchema;
  readonly body?: TSchema;
  /** What a body of the wrong shape is answered with; 400 where this is silent. */
  readonly misfitStatus?: 422;
  /** What to call it, where the protocol has another name for it than for everything else. */
  readonly misfitCode?: ErrorCode;
  /** A body may be left out altogether. */
  readonly bodyOptional?: boolean;
  /** Status to shape of what is answered when all goes well. */
  readonly replies: Readonly<Record<number, TSchema | string>>;
  /** Refusals worth naming in the documents, by status. */
  readonly refusals?: readonly number[];
}
