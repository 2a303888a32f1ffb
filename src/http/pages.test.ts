import type { FastifyRequest } from 'fastify';
import { describe, expect, it } from 'vitest';
import type { MetricsAccess } from '../system/meter.ts';
import { discoveryPage, documentPages, operatorPages } from './pages.ts';

describe('the page of discovery', () => {
  const page = discoveryPage({ text: '{"a":1}', etag: '"tag"' });

  it('has the document, and a tag by which it is known', async () => {
    expect(await page.answer(asking())).toMatchObject({
      body: '{"a":1}',
      headers: { ETag: '"tag"', 'Capabilities-Etag': '"tag"', 'Cache-Control': expect.stringContaining('max-age') },
    });
    expect(page).toMatchObject({ path: '/.well-known/openwop', isExempt: true });
  });

  it.each(['"tag"', 'W/"tag"', '"other", "tag"', '"other",W/"tag"'])(
    'is not sent again to who has it: %s',
    async (tags) => {
      expect(await page.answer(asking(tags))).toMatchObject({
        status: 304,
        body: undefined,
        headers: { ETag: '"tag"' },
      });
    },
  );

  it.each(['"other"', 'tag', ''])('is sent to who has another: %j', async (tags) => {
    expect(await page.answer(asking(tags))).toMatchObject({ body: '{"a":1}' });
  });
});

describe('the pages of documents', () => {
  it('say what is served, themselves included', async () => {
    const [schema, openapi, asyncapi] = documentPages([], '1.2.3');
    expect(JSON.parse(String((await schema!.answer(asking())).body))).toMatchObject({ type: 'object' });
    const document = JSON.parse(String((await openapi!.answer(asking())).body)) as { paths: object; info: object };
    expect(document.info).toMatchObject({ version: '1.2.3' });
    expect(Object.keys(document.paths)).toEqual([
      '/.well-known/openwop',
      '/v1/openapi.json',
      '/schemas/workflow.json',
      '/v1/asyncapi.json',
    ]);
    expect(JSON.parse(String((await asyncapi!.answer(asking())).body))).toMatchObject({ asyncapi: '3.0.0' });
  });
});

describe('the pages for operators', () => {
  const pages = (isReady: boolean, metricsAccess: MetricsAccess = 'public') =>
    operatorPages({
      metricsAccess,
      isReady: async () => isReady,
      isDraining: () => false,
      isShortOfSpace: () => false,
      quarantined: async () => 0,
      clockOffsetMs: () => 0,
      metrics: { text: async () => 'metric 1', contentType: 'text/plain' },
    });
  const answer = async (isReady: boolean, path: string) =>
    pages(isReady)
      .find((page) => page.path === path)!
      .answer(asking());

  it('say that the process is alive, whatever the store does', async () => {
    expect(await answer(false, '/healthz')).toMatchObject({ status: 200, body: '{"status":"alive"}' });
  });

  it('say whether it is ready, with the envelope where it is not', async () => {
    expect(await answer(true, '/readyz')).toMatchObject({ status: 200 });
    const { status, body } = await answer(false, '/readyz');
    expect(status).toBe(503);
    expect(JSON.parse(String(body))).toMatchObject({ error: 'service_unavailable' });
  });

  it('have the numbers', async () => {
    expect(await answer(true, '/metrics')).toMatchObject({ type: 'text/plain', body: 'metric 1' });
  });

  it.each([
    ['Bearer a-token-of-prometheus', 200],
    ['Bearer another-token', 401],
    ['a-token-of-prometheus', 401],
    [undefined, 401],
  ])('have them for who sends the token, if there is one: %s', async (authorization, expected) => {
    const [page] = pages(true, { token: 'a-token-of-prometheus' }).filter(({ path }) => path === '/metrics');
    const { status = 200, body } = await page!.answer({ headers: { authorization } } as FastifyRequest);
    expect(status).toBe(expected);
    if (expected === 401) expect(JSON.parse(String(body))).toMatchObject({ error: 'unauthenticated' });
  });

  it('have none for anybody if the operator says so', () => {
    expect(pages(true, 'off').map(({ path }) => path)).toEqual(['/healthz', '/readyz']);
  });

  it('are answered however busy the host is', () => {
    for (const page of pages(true)) expect(page.isExempt ?? page.isProbe).toBe(true);
  });
});

function asking(ifNoneMatch?: string): FastifyRequest {
  return { headers: ifNoneMatch === undefined ? {} : { 'if-none-match': ifNoneMatch } } as FastifyRequest;
}
