import { expect, it } from 'vitest';
import { Api } from '../support/api.ts';
import { everythingAtRest } from '../support/at-rest.ts';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS } from '../support/host.ts';
import { onEachStore } from '../support/stores.ts';

/** The console over the wire: signing in and out, what a session may do, and what other pages cannot make it do. */

const SESSION = '/v1/host/capstan/console/session';
const WANTED = { 'x-capstan-console': '1' };
const RUN = { workflowId: 'support-triage', inputs: { subject: 'The dashboard is down', plan: 'free' } };

onEachStore('the console', (host) => {
  /** Signs in and gives the cookie as a browser would send it. */
  async function signIn(key: string): Promise<{ cookie: string }> {
    const answer = await new Api(host().url, key).post(SESSION);
    expect(answer.status, answer.text).toBe(201);
    return { cookie: answer.headers.get('set-cookie')!.split(';')[0]! };
  }

  it('a key becomes a cookie that scripts cannot read and other sites do not send', async () => {
    const answer = await host().as('editor').post(SESSION);
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({ tenant: 'alpha', principal: 'editor-of-alpha', role: 'editor', isTest: false });
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(answer.headers.get('set-cookie')).toMatch(
      /^capstan_session=[\w.-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
    );
    expect(answer.headers.get('set-cookie')).not.toContain(KEYS.editor.key);
  });

  it('over TLS the cookie is for TLS alone', async () => {
    const answer = await host().as('editor').post(SESSION, undefined, { origin: 'https://capstan.example' });
    expect(answer.headers.get('set-cookie')).toContain('; Secure');
  });

  it('a session reads and writes what its key may', async () => {
    const session = await signIn(KEYS.editor.key);
    const who = await host().anonymous.get(SESSION, session);
    expect(who.body).toMatchObject({ principal: 'editor-of-alpha', credential: 'key' });
    const started = await host().anonymous.post('/v1/runs', RUN, { ...session, ...WANTED });
    expect(started.status).toBe(201);
    const read = await host().anonymous.get(`/v1/runs/${started.body.runId}`, session);
    expect(read.status).toBe(200);
    const viewer = await signIn(KEYS.viewer.key);
    const refused = await host().anonymous.post('/v1/runs', RUN, { ...viewer, ...WANTED });
    expectRefusal(refused, 403, 'forbidden');
    expect(refused.body.details).toMatchObject({ scopeRequired: 'runs:create' });
    const other = await signIn(KEYS.other.key);
    expectRefusal(await host().anonymous.get(`/v1/runs/${started.body.runId}`, other), 404, 'not_found');
  });

  it('a request that changes something needs the header that other pages cannot set', async () => {
    const session = await signIn(KEYS.editor.key);
    const refused = await host().anonymous.post('/v1/runs', RUN, session);
    expectRefusal(refused, 403, 'forbidden');
    expect(refused.body.details).toMatchObject({ reason: 'csrf_header_missing' });
  });

  it.each([
    ['origin', 'https://elsewhere.example'],
    ['origin', 'null'],
    ['sec-fetch-site', 'cross-site'],
    ['sec-fetch-site', 'same-site'],
  ])('a page with %s %s uses no session', async (name, value) => {
    const headers = { ...(await signIn(KEYS.editor.key)), ...WANTED, [name]: value };
    for (const answer of [
      await host().anonymous.post('/v1/runs', RUN, headers),
      await host().anonymous.get(SESSION, headers),
    ]) {
      expectRefusal(answer, 403, 'forbidden');
      expect(answer.body.details).toMatchObject({ reason: 'cross_site' });
    }
  });

  it('a page of the host itself is known by its origin', async () => {
    const headers = { ...(await signIn(KEYS.editor.key)), ...WANTED, origin: host().url };
    expect((await host().anonymous.post('/v1/runs', RUN, headers)).status).toBe(201);
  });

  it('a key that is revoked ends its sessions', async () => {
    const { body } = await host().as('owner').post('/v1/host/capstan/keys', { name: 'for a while', role: 'viewer' });
    const session = await signIn(body.key);
    expect((await host().anonymous.get(SESSION, session)).status).toBe(200);
    await host().as('owner').request('DELETE', `/v1/host/capstan/keys/${body.id}`);
    expectRefusal(await host().anonymous.get(SESSION, session), 401, 'key_revoked');
  });

  it('an altered, invented or bare cookie is nobody', async () => {
    const { cookie } = await signIn(KEYS.editor.key);
    const altered = `${cookie.slice(0, -3)}${cookie.endsWith('AAA') ? 'BBB' : 'AAA'}`;
    for (const wrong of [altered, 'capstan_session=', `capstan_session=${KEYS.editor.key}`, 'capstan_session=a.b']) {
      expectRefusal(await host().anonymous.get(SESSION, { cookie: wrong }), 401, 'unauthenticated');
    }
  });

  it('a credential that is sent wins over the session', async () => {
    const session = await signIn(KEYS.editor.key);
    expect((await host().as('viewer').get(SESSION, session)).body.principal).toBe('viewer-of-alpha');
    const wrong = await host().anonymous.get(SESSION, { ...session, authorization: 'Basic eDp5' });
    expectRefusal(wrong, 401, 'unauthenticated');
  });

  it('a session makes no other session', async () => {
    const session = await signIn(KEYS.editor.key);
    const answer = await host().anonymous.post(SESSION, undefined, { ...session, ...WANTED });
    expectRefusal(answer, 400, 'validation_error');
    expect(answer.body.details).toMatchObject({ field: 'Authorization' });
  });

  it('signing out takes the cookie away, with or without a session', async () => {
    const answer = await host().anonymous.request('DELETE', SESSION);
    expect(answer.status).toBe(204);
    expect(answer.headers.get('set-cookie')).toMatch(/^capstan_session=; Path=\/; Max-Age=0; HttpOnly/);
  });

  it('nothing at rest signs anybody in, also when a sign-in is repeated under one idempotency key', async () => {
    const repeated = { 'idempotency-key': 'sign-in-1' };
    const cookies: string[] = [];
    for (const _ of [1, 2]) {
      const answer = await host().as('editor').post(SESSION, undefined, repeated);
      cookies.push(answer.headers.get('set-cookie')!.split(';')[0]!.replace('capstan_session=', ''));
    }
    const atRest = await everythingAtRest(host().config.dataFolder, host().config.databaseUrl);
    for (const cookie of cookies) expect(atRest).not.toContain(cookie);
  });

  it.each([['/'], ['/console']])('%s leads to the console, below any path', async (path) => {
    const { status, headers } = await host().anonymous.get(path);
    expect(status).toBe(302);
    expect(headers.get('location')).toBe('console/');
  });

  it.each([
    ['', './'],
    ['runs', './'],
    ['runs/run-1?tab=events', '../'],
    ['runs/run-1/compare/run-2', '../../../'],
  ])('/console/%s is the page, and finds its files', async (path, base) => {
    const { status, headers, text } = await host().anonymous.get(`/console/${path}`);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
    expect(text).toContain(`<base href="${base}" />`);
    expect(text).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=/);
    const scripts = [...text.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map(([, name]) => name!);
    expect(scripts.length).toBeGreaterThan(1);
    for (const name of scripts) {
      const asset = await host().anonymous.get(`/console/${name}`);
      expect(asset.status).toBe(200);
      expect(asset.headers.get('cache-control')).toContain('immutable');
    }
  });
});
