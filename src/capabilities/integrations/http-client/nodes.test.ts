import { describe, expect, it } from 'vitest';
import { configProblems, effectsOf, run } from '../../../../test/support/node-context.ts';
import type { HttpRequest } from '../../../runtime/effects/http.ts';
import type { NodeContext, Outcome } from '../../../runtime/node-type.ts';

const TYPE = 'core.openwop.http.fetch';
const URL = 'https://api.example/v1/{{ id }}?q={{q}}';

/** What a node would send, and what it makes of a plain answer. */
async function sent(
  config: object,
  inputs: object = {},
): Promise<{ request: HttpRequest | undefined; outcome: Outcome }> {
  let request: HttpRequest | undefined;
  const effects = effectsOf({
    http: async (asked) => {
      request = asked;
      return { status: 200, headers: {}, body: null, durationMs: 1 };
    },
  });
  const given: Partial<NodeContext> = { config: { ...config }, inputs: { ...inputs }, effects, attempt: 2 };
  return { outcome: await run(TYPE, given), request };
}

describe(TYPE, () => {
  it('sends what it is told to, and hands on what comes back', async () => {
    const { request, outcome } = await sent(
      { url: URL, method: 'POST', headers: { 'X-Trace': 'on' }, timeoutMs: 500, failOn: ['4xx'] },
      { variables: { id: 'a/b', q: 7 }, body: { hello: 'world' } },
    );
    expect(request).toEqual({
      url: 'https://api.example/v1/a%2Fb?q=7',
      method: 'POST',
      headers: { 'user-agent': 'capstan', accept: '*/*', 'content-type': 'application/json', 'x-trace': 'on' },
      body: '{"hello":"world"}',
      timeoutMs: 500,
      maxBytes: 1_048_576,
      isKeyed: true,
      failOn: ['4xx'],
    });
    expect(outcome).toEqual({
      done: { outputs: { status: 200, headers: {}, body: null, durationMs: 1, attempts: 3 } },
    });
  });

  it('sends no body and no key with a request that only asks', async () => {
    const { request } = await sent({ url: 'https://api.example' }, { body: 'ignored' });
    expect(request).toMatchObject({ method: 'GET', isKeyed: false });
    expect(request).not.toHaveProperty('body');
  });

  it('sends texts as they are, under the type that the author gives', async () => {
    const config = { url: 'https://api.example', method: 'PUT', headers: { 'Content-Type': 'text/csv' } };
    expect((await sent(config, { body: 'a,b' })).request).toMatchObject({
      body: 'a,b',
      headers: { 'content-type': 'text/csv' },
    });
    expect((await sent({ ...config, idempotency: { mode: 'disabled' } })).request).toMatchObject({ isKeyed: false });
  });

  it.each([{}, { variables: { id: 1 } }, { variables: { id: 1, q: null } }, { variables: { id: {}, q: 1 } }])(
    'asks nobody where a placeholder has no value: %j',
    async (inputs) => {
      const { request, outcome } = await sent({ url: URL }, inputs);
      expect(request).toBeUndefined();
      expect(outcome).toMatchObject({ failed: { code: 'INVALID_URL', retryable: false } });
    },
  );

  it.each(['', '.', '..'])('asks nobody where a value would lead to another address: %j', async (id) => {
    const { outcome } = await sent({ url: 'https://api.example/orders/{{ id }}?all' }, { variables: { id } });
    expect(outcome).toMatchObject({ failed: { code: 'INVALID_URL' } });
  });

  it('takes dots and nothing for what they are where they lead nowhere', async () => {
    const url = 'https://api.example/{{ name }}.txt?from=/{{ from }}/&q={{ q }}';
    const { request } = await sent({ url }, { variables: { name: '..', from: '..', q: '' } });
    expect(request).toMatchObject({ url: 'https://api.example/...txt?from=/../&q=' });
  });

  it('is not led up the path by two values together', async () => {
    const url = 'https://api.example/orders/{{ a }}{{ b }}/items';
    const { outcome } = await sent({ url }, { variables: { a: '.', b: '.' } });
    expect(outcome).toMatchObject({ failed: { code: 'INVALID_URL' } });
  });

  it('takes a body of bounded size', async () => {
    const { outcome } = await sent({ url: 'https://api.example', method: 'POST' }, { body: 'x'.repeat(1_048_577) });
    expect(outcome).toMatchObject({ failed: { code: 'validation_error' } });
  });

  it.each([
    [{ url: 'ftp://api.example' }, '.url'],
    [{ url: 'api.example' }, '.url'],
    [{ url: 'file:///etc/passwd' }, '.url'],
    [{ url: 'https://{{ host }}/' }, '.url'],
    [{ url: 'https://api.{{ zone }}.example/' }, '.url'],
    [{ url: 'https://' }, '.url'],
    [{ url: 'https://a.example', method: 'CONNECT' }, '.method'],
    [{ url: 'https://a.example', timeoutMs: 120_001 }, '.timeoutMs'],
    [{ url: 'https://a.example', maxBytes: 1_048_577 }, '.maxBytes'],
    [{ url: 'https://a.example', failOn: ['2xx'] }, '.failOn.0'],
    [{ url: 'https://a.example', headers: { Host: 'b.example' } }, '.headers.Host'],
    [{ url: 'https://a.example', headers: { Connection: 'upgrade' } }, '.headers.Connection'],
    [{ url: 'https://a.example', headers: { 'a b': 'c' } }, '.headers.a b'],
    [{ url: 'https://a.example', headers: { a: 'b\r\nc: d' } }, '.headers.a'],
    [{ url: 'https://a.example', retry: { maxAttempts: 3 } }, '.retry'],
  ])('is refused with %j', (config, path) => {
    expect(configProblems(TYPE, config)).toEqual([path]);
  });
});
