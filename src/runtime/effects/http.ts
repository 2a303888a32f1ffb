import type { IncomingHttpHeaders } from 'node:http';
import { BadJson, parseJson } from '../../protocol/format/parse-json.ts';
import type { Clock } from '../../system/clock.ts';
import { type Egress, EgressFailure, type EgressReason, type EgressResponse } from '../../system/egress.ts';
import { redactValue, secretRedactor } from '../../system/redaction.ts';
import { NodeFailure } from '../node-failure.ts';
import { type Credential, type CredentialHeader, credentialFor } from './credentials.ts';
import type { SeamDriver } from './firing.ts';

/** The results of a request that may fail the node; the node's `failOn` chooses among them. */
export const HTTP_FAILURE_CLASSES = ['network', '3xx', '4xx', '5xx'] as const;
/** A class of results that may fail a node. */
type HttpFailureClass = (typeof HTTP_FAILURE_CLASSES)[number];

/** A request of a node. */
export interface HttpRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string | CredentialHeader>>;
  readonly body?: string | undefined;
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** Sends the effect id as `Idempotency-Key`, so that the receiver can recognise a retry. */
  readonly isKeyed: boolean;
  readonly failOn: readonly HttpFailureClass[];
}

/** The response that a node gets. */
export interface HttpResult {
  /** 0 if there was no response. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The value of a JSON response, else its text; null if it is empty. */
  readonly body: unknown;
  readonly durationMs: number;
  readonly idempotencyKey?: string | undefined;
  readonly networkError?: string | undefined;
}

/** The response headers that a workflow gets; others may hold session data. */
const SHOWN_HEADERS: readonly string[] = [
  'content-type',
  'content-language',
  'etag',
  'last-modified',
  'link',
  'location',
  'retry-after',
  'x-request-id',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
];

/** Statuses below 500 that are worth a retry. */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 425, 429]);

/** Sends requests through the egress guard. A retryable failure leaves the effect open, so the next attempt sends again. */
export function httpSeam(
  egress: Egress,
  clock: Clock,
  credentials: readonly Credential[] = [],
): SeamDriver<HttpRequest, HttpResult> {
  return async (
    { isKeyed, failOn, url, method, headers, body, timeoutMs, maxBytes },
    { effectId, signal, tenant, trace },
  ) => {
    const startedAt = clock.now();
    const key = isKeyed ? { 'idempotency-key': effectId } : {};
    const { filled, redact } = resolveHeaders(headers, (name) => credentialFor(credentials, name, tenant, url));
    const request = { url, method, headers: { ...trace, ...filled, ...key }, timeoutMs, maxBytes, signal };
    const response = await send(egress, body === undefined ? request : { ...request, body }, failOn);
    if ('status' in response) failOnStatus(response.status, failOn);
    const result = 'status' in response ? resultOf(response) : { status: 0, headers: {}, body: null, ...response };
    const sent = isKeyed ? { idempotencyKey: effectId } : {};
    return { ...redactValue(result, redact), durationMs: clock.now() - startedAt, ...sent };
  };
}

/** The headers with their credentials, and a redactor for a response that repeats a secret. */
function resolveHeaders(headers: HttpRequest['headers'], find: (name: string) => Credential) {
  const used: { id: string; value: string }[] = [];
  const filled = Object.entries(headers).map(([header, value]) => {
    if (typeof value === 'string') return [header, value];
    const { name, secret } = find(value.credentialRef);
    used.push({ id: name, value: secret });
    return [header, (value.prefix ?? '') + secret];
  });
  return { filled: Object.fromEntries(filled) as Record<string, string>, redact: secretRedactor(used) };
}

async function send(
  egress: Egress,
  request: Parameters<Egress['send']>[0],
  failOn: readonly HttpFailureClass[],
): Promise<EgressResponse | { readonly networkError: string }> {
  try {
    return await egress.send(request);
  } catch (error) {
    if (!(error instanceof EgressFailure)) throw error;
    const failure = FAILURES[error.reason];
    // An abort is ours and says nothing about the server: it is never a result, so the effect stays open.
    const isResult = failure.retryable && error.reason !== 'aborted' && !failOn.includes('network');
    if (!isResult) throw new NodeFailure({ ...failure, message: error.message });
    return { networkError: error.message };
  }
}

/** A forbidden address or a response that is too large fails every time, so these are not retried. */
const FAILURES: Record<EgressReason, { readonly code: string; readonly retryable: boolean }> = {
  refused: { code: 'egress_denied', retryable: false },
  too_large: { code: 'response_too_large', retryable: false },
  unreachable: { code: 'upstream_unavailable', retryable: true },
  timeout: { code: 'upstream_unavailable', retryable: true },
  aborted: { code: 'upstream_unavailable', retryable: true },
};

function failOnStatus(status: number, failOn: readonly HttpFailureClass[]): void {
  const failureClass = `${Math.floor(status / 100)}xx` as HttpFailureClass;
  if (!failOn.includes(failureClass)) return;
  throw new NodeFailure({
    code: 'http_error',
    message: `The server responded with status ${status}.`,
    details: { status },
    retryable: failureClass === '5xx' || RETRYABLE_STATUSES.has(status),
  });
}

function resultOf({ status, headers, body }: EgressResponse): Pick<HttpResult, 'status' | 'headers' | 'body'> {
  const shown = SHOWN_HEADERS.flatMap((name) => {
    const value = headers[name];
    return value === undefined ? [] : [[name, String(value)]];
  });
  return { status, headers: Object.fromEntries(shown), body: readBody(body.toString('utf8'), headers) };
}

function readBody(text: string, headers: IncomingHttpHeaders): unknown {
  if (text === '') return null;
  if (!/\bjson\b/i.test(headers['content-type'] ?? '')) return text;
  try {
    return parseJson(text, 'answer');
  } catch (error) {
    if (error instanceof BadJson) return text;
    throw error;
  }
}
