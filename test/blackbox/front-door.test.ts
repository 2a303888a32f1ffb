import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestHost, type TestHost } from '../support/host.ts';

describe('the API reference', () => {
  let host: TestHost;
  beforeAll(async () => {
    host = await startTestHost('sqlite', undefined);
  });
  afterAll(() => host?.stop());

  it.each([
    ['/console/reference/', 'text/html'],
    ['/console/reference/api', 'text/html'],
    ['/console/reference/page.css', 'text/css'],
    ['/console/reference/page.js', 'text/javascript'],
  ])('%s is %s, and may do little', async (path, type) => {
    const { status, headers } = await host.anonymous.get(path);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe(`${type}; charset=utf-8`);
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; img-src 'self' data:; " +
        "base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
  });

  it('is asked for again only when it has changed', async () => {
    const first = await host.anonymous.get('/console/reference/');
    expect(first.headers.get('cache-control')).toBe('no-cache');
    const etag = first.headers.get('etag')!;
    const again = await host.anonymous.get('/console/reference/', { 'if-none-match': `"other", W/${etag}` });
    expect(again).toMatchObject({ status: 304, text: '' });
    expect(again.headers.get('etag')).toBe(etag);
    const changed = await host.anonymous.get('/console/reference/', { 'if-none-match': '"other"' });
    expect(changed).toMatchObject({ status: 200, text: first.text });
  });

  it.each(['', 'api'])('serves every file that the page asks for: /%s', async (page) => {
    const { text } = await host.anonymous.get(`/console/reference/${page}`);
    const asked = [...text.matchAll(/(?:src|href)="([\w-]+\.(?:js|css))"/g)].map(
      ([, name]) => `/console/reference/${name}`,
    );
    const scripts = await Promise.all(asked.filter((path) => path.endsWith('.js')).map((path) => imports(path)));
    for (const path of new Set([...asked, ...scripts.flat()])) {
      const { status, headers } = await host.anonymous.get(path);
      expect(status, path).toBe(200);
      expect(headers.get('content-type'), path).not.toContain('html');
    }
  });

  async function imports(path: string): Promise<string[]> {
    const { text } = await host.anonymous.get(path);
    const found = [...text.matchAll(/from '\.\/([\w-]+\.js)'/g)].map(([, name]) => `/console/reference/${name}`);
    return [...found, ...(await Promise.all(found.map(imports))).flat()];
  }

  it.each(['', 'api'])('contains no script and no style of its own: /%s', async (page) => {
    const { text } = await host.anonymous.get(`/console/reference/${page}`);
    expect(text).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=/);
  });

  it('takes nothing but GET and HEAD', async () => {
    const { status, headers } = await host.anonymous.post('/console/reference/', {});
    expect(status).toBe(405);
    expect(headers.get('allow')).toBe('GET, HEAD');
  });
});
