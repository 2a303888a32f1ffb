import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../test/support/manual-clock.ts';
import { type Egress, EgressFailure, type EgressReason, type EgressRequest } from '../../system/egress.ts';
import { NodeFailure } from '../node-type.ts';
import { type HttpRequest, httpSeam } from './http.ts';

const REQUEST: HttpRequest = {
  url: 'https://api.example/',
  method: 'POST',
  headers: { 'x-a': 'b' },
  body: '{}',
  timeoutMs: 1_000,
  maxBytes: 100,
  isKeyed: true,
  failOn: ['network', '5xx'],
};

const BILLING = { name: 'billing', secret: 'quite-secret', origins: ['https://api.example'], tenants: ['alpha'] };

interface Said {
  readonly status?: number;
  readonly headers?: Record<string, string | string[]>;
  readonly text?: string;
  readonly failure?: EgressReason;
}

async function ask(said: Said, more: Partial<HttpRequest> = {}) {
  const asked: EgressRequest[] = [];
  const send = async (request: EgressRequest) => {
    asked.push(request);
    if (said.failure) throw new EgressFailure(said.failure, 'There was no answer.');
    return { status: said.status ?? 200, headers: said.headers ?? {}, body: Buffer.from(said.text ?? '') };
  };
  const seam = httpSeam({ send } as unknown as Egress, new ManualClock(), [BILLING]);
  const { signal } = new AbortController();
  const firing = { effectId: 'effect-1', signal, tenant: 'alpha', runId: 'run-1', nodeId: 'fetch' };
  const outcome = await seam({ ...REQUEST, ...more }, firing).catch((error: unknown) => {
    if (error instanceof NodeFailure) return { failed: error.error };
    throw error;
  });
  return { asked, outcome };
}

describe('a request', () => {
  it('carries the identity of the effect, the bounds and nothing else', async () => {
    const { asked, outcome } = await ask({});
    expect(asked).toEqual([
      {
        url: REQUEST.url,
        method: 'POST',
        headers: { 'x-a': 'b', 'idempotency-key': 'effect-1' },
        body: '{}',
        timeoutMs: 1_000,
        maxBytes: 100,
        signal: expect.any(AbortSignal),
      },
    ]);
    expect(outcome).toMatchObject({ status: 200, idempotencyKey: 'effect-1' });
    const unkeyed = await ask({}, { isKeyed: false });
    expect(unkeyed.asked[0]!.headers).toEqual({ 'x-a': 'b' });
    expect(unkeyed.outcome).not.toHaveProperty('idempotencyKey');
  });
});

describe('a credential', () => {
  const headers = { authorization: { credentialRef: 'billing', prefix: 'Bearer ' } };

  it('is filled in when it is sent, and taken out of an answer that repeats it', async () => {
    const { asked, outcome } = await ask(
      { text: 'You are quite-secret.', headers: { etag: 'quite-secret' } },
      { headers },
    );
    expect(asked[0]!.headers).toMatchObject({ authorization: 'Bearer quite-secret' });
    expect(outcome).toMatchObject({
      body: 'You are [REDACTED:billing].',
      headers: { etag: '[REDACTED:billing]' },
    });
  });

  it.each([
    ['that is not there', { headers: { a: { credentialRef: 'other' } } }, 'credential_required'],
    ['for others', { headers, url: 'https://api.example.evil/' }, 'credential_forbidden'],
    ['for another port', { headers, url: 'https://api.example:8443/' }, 'credential_forbidden'],
    ['in the clear', { headers, url: 'http://api.example/' }, 'credential_forbidden'],
  ])('%s is not sent, and nothing else is', async (_what, more, code) => {
    const { asked, outcome } = await ask({}, more);
    expect(asked).toEqual([]);
    expect(outcome).toMatchObject({ failed: { code, retryable: false } });
  });
});

describe('an answer', () => {
  const JSON_TYPE = { 'content-type': 'application/problem+json; charset=utf-8' };

  it.each([
    [{ headers: JSON_TYPE, text: '{"a":[1]}' }, { a: [1] }],
    [{ headers: JSON_TYPE, text: '{"a":' }, '{"a":'],
    [{ headers: JSON_TYPE, text: `${'['.repeat(99)}` }, '['.repeat(99)],
    [{ headers: { 'content-type': 'text/plain' }, text: '{"a":1}' }, '{"a":1}'],
    [{ text: 'é' }, 'é'],
    [{ headers: JSON_TYPE, text: '' }, null],
  ])('is JSON where it says so and is, else text: %j', async (said, body) => {
    expect((await ask(said)).outcome).toMatchObject({ body });
  });

  it('shows the headers that say something, and no cookies', async () => {
    const headers = { etag: '"1"', 'set-cookie': ['session=1'], 'x-internal': 'yes', 'x-ratelimit-remaining': '3' };
    expect((await ask({ headers })).outcome).toMatchObject({ headers: { etag: '"1"', 'x-ratelimit-remaining': '3' } });
    expect(JSON.stringify((await ask({ headers })).outcome)).not.toMatch(/session|x-internal/);
  });

  it.each([
    [503, ['5xx'], { code: 'http_error', details: { status: 503 }, retryable: true }],
    [404, ['4xx'], { code: 'http_error', details: { status: 404 }, retryable: false }],
    [429, ['4xx'], { code: 'http_error', details: { status: 429 }, retryable: true }],
    [302, ['3xx'], { code: 'http_error', details: { status: 302 }, retryable: false }],
  ] as const)('of %d fails the node where it is to', async (status, failOn, failed) => {
    expect((await ask({ status }, { failOn })).outcome).toMatchObject({ failed });
    expect((await ask({ status }, { failOn: [] })).outcome).toMatchObject({ status });
  });

  it.each([
    ['unreachable', 'upstream_unavailable', true],
    ['timeout', 'upstream_unavailable', true],
    ['too_large', 'response_too_large', false],
    ['refused', 'egress_denied', false],
  ] as const)('that does not come (%s) fails with %s', async (failure, code, retryable) => {
    expect((await ask({ failure })).outcome).toMatchObject({ failed: { code, retryable } });
    const tolerant = (await ask({ failure }, { failOn: [] })).outcome;
    expect(tolerant).toMatchObject(
      retryable ? { status: 0, body: null, networkError: 'There was no answer.' } : { failed: { code } },
    );
  });

  it('that this host no longer waits for is no result, so that another attempt sends again', async () => {
    const failed = { code: 'upstream_unavailable', retryable: true };
    expect((await ask({ failure: 'aborted' }, { failOn: [] })).outcome).toMatchObject({ failed });
  });
});
