import type { IncomingHttpHeaders } from 'node:http';
import { BadJson, parseJson } from '../../protocol/format/parse-json.ts';
import type { Clock } from '../../system/clock.ts';
import { type Egress, EgressFailure, type EgressReason, type EgressResponse } from '../../system/egress.ts';
import { redactValue, secretRedactor } from '../../system/redaction.ts';
import { NodeFailure } from '../node-type.ts';
import { type Credential, type CredentialHeader, credentialFor } from './credentials.ts';
import type { SeamDrivers } from './seams.ts';

/** What a request may come to that fails the node; everything else is an outcome like any other. */
export const HTTP_TROUBLES = ['network', '3xx', '4xx', '5xx'] as const;
export type HttpTrouble = (typeof HTTP_TROUBLES)[number];

export interface HttpRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string | CredentialHeader>>;
  readonly body?: string | undefined;
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** Sends the identity of the effect along, by which the receiver can tell a repeat. */
  readonly isKeyed: boolean;
  readonly failOn: readonly HttpTrouble[];
}

export interface HttpResult {
  /** 0 when there was no answer. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The value of an answer that is JSON, else its text; null when it is empty. */
  readonly body: unknown;
  readonly durationMs: number;
  readonly idempotencyKey?: string | undefined;
  readonly networkError?: string | undefined;
}

/** Headers of an answer that say something to a workflow; others may carry what is nobody's business. */
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

/** Answers that ask to come back later. */
const WORTH_A_RETRY: ReadonlySet<number> = new Set([408, 425, 429]);

/** Asks somebody on the network, through the guard. What is worth a retry is left open: the effect is not over then. */
export function httpSeam(egress: Egress, clock: Clock, credentials: readonly Credential[] = []): SeamDrivers['http'] {
  return async ({ isKeyed, failOn, url, method, headers, body, timeoutMs, maxBytes }, { effectId, signal, tenant }) => {
    const startedAt = clock.now();
    const key = isKeyed ? { 'idempotency-key': effectId } : {};
    const { filled, redact } = fillIn(headers, (name) => credentialFor(credentials, name, tenant, url));
    const request = { url, method, headers: { ...filled, ...key }, timeoutMs, maxBytes, signal };
    const answer = await ask(egress, body === undefined ? request : { ...request, body }, failOn);
    if ('status' in answer) failOnStatus(answer.status, failOn);
    const result = 'status' in answer ? resultOf(answer) : { status: 0, headers: {}, body: null, ...answer };
    const sent = isKeyed ? { idempotencyKey: effectId } : {};
    return { ...redactValue(result, redact), durationMs: clock.now() - startedAt, ...sent };
  };
}

/** Headers as they are sent, which nobody gets to see, and what takes their secrets out of an answer that repeats them. */
function fillIn(headers: HttpRequest['headers'], find: (name: string) => Credential) {
  const used: { id: string; value: string }[] = [];
  const filled = Object.entries(headers).map(([header, value]) => {
    if (typeof value === 'string') return [header, value];
    const { name, secret } = find(value.credentialRef);
    used.push({ id: name, value: secret });
    return [header, (value.prefix ?? '') + secret];
  });
  return { filled: Object.fromEntries(filled) as Record<string, string>, redact: secretRedactor(used) };
}

async function ask(
  egress: Egress,
  request: Parameters<Egress['send']>[0],
  failOn: readonly HttpTrouble[],
): Promise<EgressResponse | { readonly networkError: string }> {
  try {
    return await egress.send(request);
  } catch (error) {
    if (!(error instanceof EgressFailure)) throw error;
    const failure = FAILURES[error.reason];
    if (!failure.retryable || failOn.includes('network')) throw new NodeFailure({ ...failure, message: error.message });
    return { networkError: error.message };
  }
}

/** An address that may not be asked, or an answer that is too large, is so again next time. */
const FAILURES: Record<EgressReason, { readonly code: string; readonly retryable: boolean }> = {
  refused: { code: 'egress_denied', retryable: false },
  too_large: { code: 'response_too_large', retryable: false },
  unreachable: { code: 'upstream_unavailable', retryable: true },
  timeout: { code: 'upstream_unavailable', retryable: true },
  aborted: { code: 'upstream_unavailable', retryable: true },
};

function failOnStatus(status: number, failOn: readonly HttpTrouble[]): void {
  const trouble = `${Math.floor(status / 100)}xx` as HttpTrouble;
  if (!failOn.includes(trouble)) return;
  throw new NodeFailure({
    code: 'http_error',
    message: `The answer was ${status}.`,
    details: { status },
    retryable: trouble === '5xx' || WORTH_A_RETRY.has(status),
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
