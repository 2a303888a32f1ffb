import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectRefusal } from '../support/envelope.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { IdentityProvider, IssuerKeyRing, oidcOf, startIssuer, type TestIssuer } from '../support/issuer.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** Signing in to the console at an identity provider. The test is the browser: it follows redirects and keeps cookies. */

const BEGIN = '/v1/host/capstan/console/sign-in';
const SESSION = '/v1/host/capstan/console/session';
/** How long an identity provider that did not answer is not asked again. */
const RETRY_MS = 5_000;

describe('signing in at an identity provider', () => {
  const ring = new IssuerKeyRing();
  const provider = new IdentityProvider(ring);
  let issuer: TestIssuer;
  let host: TestHost;
  beforeAll(async () => {
    await ring.add('first', 'ES256');
    issuer = await startIssuer(ring, provider);
    provider.claims = { iss: issuer.url, sub: 'ada@example.com', tenant: 'alpha', role: 'editor' };
    host = await startTestHost('sqlite', undefined, { oidc: oidcOf(issuer) });
  });
  afterAll(async () => {
    await host?.stop();
    await issuer?.stop();
  });

  const get = async (url: string, cookie = '') => {
    const answer = await fetch(url, { redirect: 'manual', headers: { cookie } });
    const [kept = ''] = (answer.headers.get('set-cookie') ?? '').split(';');
    return {
      status: answer.status,
      location: answer.headers.get('location') ?? '',
      cookie: kept,
      headers: answer.headers,
    };
  };
  const problem = (name: string): string => `${host.url}/console/sign-in?problem=${name}`;
  /** To the identity provider and back, up to the answer that it sends the browser to the host with. */
  const gone = async (next = '') => {
    const begun = await get(`${host.url}${BEGIN}${next}`);
    const { location } = await get(begun.location);
    return { begun, back: location };
  };

  it('leads there and back, and ends with a session of that person', async () => {
    const { begun, back } = await gone('?next=inbox');
    expect(begun.status).toBe(302);
    expect(begun.headers.get('set-cookie')).toMatch(/; HttpOnly; SameSite=Lax$/);
    expect(provider.asked).toMatchObject({
      response_type: 'code',
      client_id: 'capstan-console',
      scope: 'openid email',
      code_challenge_method: 'S256',
    });
    const done = await get(back, begun.cookie);
    expect(done.location).toBe(`${host.url}/console/inbox`);
    expect(done.headers.get('set-cookie')).toMatch(/^capstan_session=.*; HttpOnly; SameSite=Strict$/);
    expect(provider.exchanged).toMatchObject({ grant_type: 'authorization_code', client_secret: 'shh' });
    const who = await host.anonymous.get(SESSION, { cookie: done.cookie });
    expect(who.body).toMatchObject({ tenant: 'alpha', role: 'editor', credential: 'token' });
  });

  it('asks the identity provider about itself and for its keys once, however many come', async () => {
    await Promise.all([gone(), gone(), gone()]);
    const { begun, back } = await gone();
    expect((await get(back, begun.cookie)).cookie).toMatch(/^capstan_session=/);
    expect(issuer).toMatchObject({ discoveries: 1, fetches: 1 });
  });

  it('takes no answer that this browser did not ask for, and none twice', async () => {
    const { begun, back } = await gone();
    expect((await get(back)).location).toBe(problem('other-browser'));
    const other = await gone();
    expect((await get(back, other.begun.cookie)).location).toBe(problem('other-browser'));
    expect((await get(back, `${begun.cookie}x`)).location).toBe(problem('other-browser'));
    expect((await get(back, begun.cookie)).cookie).toMatch(/^capstan_session=/);
    const again = await get(back, begun.cookie);
    expect(again.location).toBe(problem('not-confirmed'));
    expect(again.cookie).toBe('');
  });

  it('says so if the person cancels', async () => {
    const { begun } = await gone();
    const denied = `${host.url}${BEGIN}/return?error=access_denied`;
    const answer = await get(`${denied}&state=${provider.asked.state}`, begun.cookie);
    expect(answer.location).toBe(problem('not-confirmed'));
    expect(answer.cookie).toBe('');
    expect((await get(`${denied}&state=other`, begun.cookie)).location).toBe(problem('other-browser'));
  });

  it.each([
    ['with another nonce', { nonce: 'other' }],
    ['for another client', { aud: 'somebody-else' }],
    ['that has expired', { exp: 1 }],
  ])('takes no id token %s', async (_title, idClaims) => {
    provider.idClaims = idClaims;
    const { begun, back } = await gone();
    const answer = await get(back, begun.cookie);
    provider.idClaims = {};
    expect(answer.location).toBe(problem('not-confirmed'));
    expect(answer.cookie).toBe('');
  });

  it('says so if the person has no access', async () => {
    const { claims } = provider;
    provider.claims = { ...claims, tenant: undefined };
    const { begun, back } = await gone();
    const answer = await get(back, begun.cookie);
    provider.claims = claims;
    expect(answer.location).toBe(problem('no-access'));
  });

  it('says so if what the issuer says about the person does not fit into a cookie', async () => {
    const { claims } = provider;
    provider.claims = { ...claims, groups: Array.from({ length: 300 }, (_, index) => `group-${index}`) };
    const { begun, back } = await gone();
    const answer = await get(back, begun.cookie);
    provider.claims = claims;
    expect(answer.location).toBe(problem('too-long'));
  });

  it.each(['//evil.example', 'https://evil.example', '../../v1', 'a//b', '%2e%2e/v1'])(
    'leads to no other place: %s',
    async (next) => {
      const { begun, back } = await gone(`?next=${encodeURIComponent(next)}`);
      const { location } = await get(back, begun.cookie);
      expect(new URL(location).origin).toBe(host.url);
      expect(new URL(location).pathname).toMatch(/^\/console\//);
    },
  );

  it('is offered where it is set up, and by nobody else', async () => {
    const methods = `${BEGIN}/methods`;
    expect((await host.anonymous.get(methods)).body).toEqual({ redirect: { issuer: issuer.url } });
    const plain = await startTestHost('sqlite', undefined);
    try {
      expect((await plain.anonymous.get(methods)).body).toEqual({});
      expectRefusal(await plain.anonymous.get(BEGIN), 404, 'not_found');
      expectRefusal(await plain.anonymous.get(`${BEGIN}/return?code=a&state=b`), 404, 'not_found');
    } finally {
      await plain.stop();
    }
  });

  it('says so if the identity provider does not answer, and leads back to the public URL once it does', async () => {
    const clock = new ManualClock();
    const publicUrl = 'https://runs.example.com/capstan';
    const own = await startTestHost('sqlite', undefined, { oidc: oidcOf(issuer), publicUrl }, clock);
    try {
      issuer.setDown(true);
      expectRefusal(await own.anonymous.get(BEGIN), 503, 'service_unavailable');
      issuer.setDown(false);
      expectRefusal(await own.anonymous.get(BEGIN), 503, 'service_unavailable');
      clock.advance(RETRY_MS);
      const begun = await get(`${own.url}${BEGIN}`);
      expect(begun.headers.get('set-cookie')).toMatch(/; Path=\/capstan; .*; SameSite=Lax; Secure$/);
      expect(new URL(begun.location).searchParams.get('redirect_uri')).toBe(`${publicUrl}${BEGIN}/return`);
      const failed = await get(`${own.url}${BEGIN}/return?code=a&state=b`);
      expect(failed.location).toBe(`${publicUrl}/console/sign-in?problem=other-browser`);
    } finally {
      await own.stop();
    }
  });
});
