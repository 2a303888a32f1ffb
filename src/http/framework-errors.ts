import type { FastifyError } from 'fastify';
import { type Refusal, refuse } from '../protocol/errors.ts';
import { BadJson } from '../protocol/format/parse-json.ts';
import { NoSpace, StoreFailure } from '../store/store.ts';
import { TemporaryFailure } from '../system/temporary-failure.ts';

const BY_STATUS: Record<number, Refusal> = {
  400: refuse('validation_error', 'The request is malformed.'),
  404: refuse('not_found', 'There is no such route.'),
  408: refuse('request_timeout', 'The request took too long to arrive.'),
  413: refuse('payload_too_large', 'The body is too large.'),
  414: refuse('uri_too_long', 'The path is too long.'),
  415: refuse('unsupported_media_type', 'Send JSON with `Content-Type: application/json`.'),
};

const NO_SPACE: Refusal = {
  ...refuse('service_unavailable', 'The host is low on disk space and starts no new runs.', { reason: 'storage' }),
  headers: { 'Retry-After': '30' },
};

/** How long a host that failed is left alone. */
const RETRY_AFTER_S = 1;

/** Whether the request was carried out is not known: a retry with the same idempotency key finds out. */
const STORE_FAILED: Refusal = {
  ...refuse('service_unavailable', 'The store did not answer. Try again with the same Idempotency-Key.', {
    retryAfter: RETRY_AFTER_S,
  }),
  headers: { 'Retry-After': String(RETRY_AFTER_S) },
};

const BUSY: Refusal = {
  ...refuse('service_unavailable', 'The host is too busy. Try again.', { retryAfter: RETRY_AFTER_S }),
  headers: { 'Retry-After': String(RETRY_AFTER_S) },
};

/** The refusal for an error that the framework, the JSON parser or the store throws; undefined for a failure of our own. */
export function refusalOfError(error: FastifyError | Error): Refusal | undefined {
  if (error instanceof BadJson) return refuse('validation_error', error.message, { field: 'body' });
  if (error instanceof NoSpace) return NO_SPACE;
  if (error instanceof StoreFailure) return STORE_FAILED;
  if (error instanceof TemporaryFailure) return BUSY;
  const { statusCode } = error as FastifyError;
  return statusCode === undefined ? undefined : BY_STATUS[statusCode];
}

/** The refusal for a failure of our own; the log has the details under the correlation id. */
export function internalError(correlationId?: string): Refusal {
  const message = 'The host failed to answer. Try again; if it fails again, report the correlation id.';
  return refuse('internal_error', message, correlationId === undefined ? undefined : { correlationId });
}
