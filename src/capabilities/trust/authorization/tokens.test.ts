import { generateSecret, type JWTPayload } from 'jose';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { IssuerKeyRing, type Signing } from '../../../../test/support/issuer.ts';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { EgressFailure, type EgressRequest, type EgressResponse } from '../../../system/egress.ts';
import type { Caller } from '../../request.ts';
import { Issuer } from './issuer.ts';
import type { OidcSettings } from './settings.ts';
import { looksLikeToken, tokenVerifier } from './tokens.ts';

const ISSUER = 'https://id.example.com';
const AUDIENCE = 'capstan';
const SKEW_S = 60;
const SETTINGS: OidcSettings = {
  issuer: ISSUER,
  audience: AUDIENCE,
  tenantClaim: 'tenant',
  roleClaim: 'role',
  groupClaim: 'groups',
  workspaceClaim: 'workspace',
  clockSkewS: SKEW_S,
};
const SECOND_MS = 1_000;
const COOLDOWN_MS = 30 * SECOND_MS;
const RETRY_MS = 5 * SECOND_MS;
const FRESH_MS = 10 * 60 * SECOND_MS;
const DAY_MS = 24 * 60 * 60 * SECOND_MS;

const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'];
/** Making keys takes time, so all tests share them. */
const ring = new IssuerKeyRing();
beforeAll(async () => {
  for (const alg of ALGORITHMS) await ring.add(alg, alg);
  await ring.add('unpublished', 'ES256', { isPublished: false });
  await ring.add('next', 'ES256', { isPublished: false });
});

/** An issuer that answers at once, is asked through `ask`, and may be away. */
class FakeIssuer {
  readonly asked: string[] = [];
  isDown = false;
  documents: Record<string, unknown> = {};

  readonly send = async ({ url, trusted }: EgressRequest): Promise<EgressResponse> => {
    expect(trusted).toBe(true);
    this.asked.push(url);
    if (this.isDown) throw new EgressFailure('unreachable', 'The name cannot be resolved.');
    const document = this.documents[url];
    const body = Buffer.from(typeof document === 'string' ? document : JSON.stringify(document ?? {}));
    return { status: document === undefined ? 404 : 200, headers: {}, body };
  };

  get fetches(): number {
    return this.asked.filter((url) => url === `${ISSUER}/keys`).length;
  }
}

let clock: ManualClock;
let issuer: FakeIssuer;
let logged: object[];
let verify: (token: string) => Promise<Caller | object>;

beforeEach(() => {
  ring.publish(...ALGORITHMS);
  clock = new ManualClock();
  issuer = new FakeIssuer();
  issuer.documents = {
    [`${ISSUER}/.well-known/openid-configuration`]: { issuer: ISSUER, jwks_uri: `${ISSUER}/keys` },
    [`${ISSUER}/keys`]: ring.jwks,
  };
  logged = [];
  verify = verifierWith({});
});

function verifierWith(settings: Partial<OidcSettings>) {
  const note = (fields: object, message: string): void => {
    logged.push({ ...fields, message });
  };
  const log = { debug: note, info: note, warn: note, error: note };
  const oidc = { ...SETTINGS, ...settings };
  return tokenVerifier(oidc, { clock, log }, new Issuer(oidc, { clock, egress: issuer, log }));
}

const nowS = (): number => clock.now() / SECOND_MS;

function token(claims: JWTPayload = {}, how: Signing = {}): Promise<string> {
  const base = { iss: ISSUER, aud: AUDIENCE, sub: 'ada', tenant: 'alpha', role: 'viewer' };
  return ring.sign({ ...base, ...claims }, nowS(), { kid: 'ES256', ...how });
}

const accepted = (outcome: object): boolean => !isRefusal(outcome);
const INVALID = { refused: 'unauthenticated' };

describe('a token', () => {
  it.each(ALGORITHMS)('signed with %s is believed', async (kid) => {
    expect(await verify(await token({}, { kid }))).toMatchObject({
      subject: { tenant: 'alpha', issuer: ISSUER, lane: 'oidc' },
      role: 'viewer',
    });
  });

  it('may be made out to several, of whom this host is one', async () => {
    expect(accepted(await verify(await token({ aud: ['elsewhere', AUDIENCE] })))).toBe(true);
  });

  it.each(['JWT', 'jwt', 'at+jwt', 'application/at+jwt'])('may be of the type %s', async (typ) => {
    expect(accepted(await verify(await token({}, { header: { typ } })))).toBe(true);
  });

  it.each<[string, JWTPayload, Signing?]>([
    ['of another issuer', { iss: 'https://id.example.org' }],
    ['of nearly the same issuer', { iss: `${ISSUER}/` }],
    ['without an issuer', { iss: undefined as never }],
    ['for another audience', { aud: 'elsewhere' }],
    ['for an audience in another case', { aud: AUDIENCE.toUpperCase() }],
    ['without an audience', { aud: undefined as never }],
    ['without an end', { exp: undefined as never }],
    ['without a beginning', { iat: undefined as never }],
    ['of nobody', { sub: undefined as never }],
    ['of no tenant', { tenant: undefined }],
    ['of another type', {}, { header: { typ: 'logout+jwt' } }],
  ])('%s is refused', async (_what, claims, how) => {
    expect(await verify(await token(claims, how))).toMatchObject(INVALID);
  });

  it('of another issuer is nothing to ask our issuer about', async () => {
    await verify(await token({ iss: 'https://id.example.org' }));
    expect(issuer.asked).toEqual([]);
  });

  it('whose signature was made with another key is refused', async () => {
    const good = await token();
    const bad = await token({}, { kid: 'unpublished', header: { kid: 'ES256' } });
    expect(accepted(await verify(good))).toBe(true);
    expect(await verify(bad)).toMatchObject(INVALID);
    const [head, , signature] = good.split('.');
    const [, body] = (await token({ role: 'owner' })).split('.');
    expect(await verify([head, body, signature].join('.'))).toMatchObject(INVALID);
  });

  it('without a signature is refused, however it says so', async () => {
    const [, body, signature] = (await token()).split('.');
    for (const alg of ['none', 'None', 'NONE', '']) {
      const head = Buffer.from(JSON.stringify({ alg, kid: 'ES256' })).toString('base64url');
      for (const rest of ['', signature]) expect(await verify(`${head}.${body}.${rest}`)).toMatchObject(INVALID);
    }
    expect(issuer.fetches).toBe(0);
  });

  it('signed with what everybody knows is refused: the public key as a shared secret', async () => {
    const published = ring.jwks.keys.find(({ kid }) => kid === 'RS256')!;
    for (const secret of [JSON.stringify(published), published.n!]) {
      for (const alg of ['HS256', 'HS384', 'HS512']) {
        const key = new TextEncoder().encode(secret.padEnd(64));
        expect(await verify(await token({}, { kid: 'RS256', alg, key }))).toMatchObject(INVALID);
      }
    }
    expect(issuer.fetches).toBe(0);
  });

  it('signed with a secret that the issuer should not have published is refused', async () => {
    const secret = await generateSecret('HS256', { extractable: true });
    const k = Buffer.from(await crypto.subtle.exportKey('raw', secret as never)).toString('base64url');
    issuer.documents[`${ISSUER}/keys`] = { keys: [{ kty: 'oct', kid: 'shared', k }] };
    const forged = await token({}, { kid: 'shared', alg: 'HS256', key: secret as never });
    expect(await verify(forged)).toMatchObject(INVALID);
  });

  it.each(['a.b.c', '..', 'eyJ.eyJ.', 'not a token', `${'x'.repeat(5_000)}.y.z`])(
    'that is no token is refused: %s',
    async (text) => {
      expect(await verify(text)).toMatchObject(INVALID);
      expect(issuer.asked).toEqual([]);
    },
  );

  describe('in time', () => {
    it.each<[string, (now: number) => JWTPayload, boolean]>([
      ['has ended, within the skew', (now) => ({ exp: now - SKEW_S + 1 }), true],
      ['has ended, beyond the skew', (now) => ({ exp: now - SKEW_S }), false],
      ['begins soon, within the skew', (now) => ({ nbf: now + SKEW_S }), true],
      ['begins soon, beyond the skew', (now) => ({ nbf: now + SKEW_S + 1 }), false],
      ['was made ahead of time, within the skew', (now) => ({ iat: now + SKEW_S }), true],
      ['was made ahead of time, beyond the skew', (now) => ({ iat: now + SKEW_S + 1 }), false],
    ])('%s', async (_what, times, isAccepted) => {
      expect(accepted(await verify(await token(times(nowS()))))).toBe(isAccepted);
    });

    it('is judged by the moment it is shown', async () => {
      const shown = await token();
      expect(accepted(await verify(shown))).toBe(true);
      clock.advance(2 * 60 * 60 * SECOND_MS);
      expect(await verify(shown)).toMatchObject({ ...INVALID, message: 'This token has expired. Get a new one.' });
    });

    it('without skew is judged to the second', async () => {
      verify = verifierWith({ clockSkewS: 0 });
      expect(accepted(await verify(await token({ exp: nowS() + 1 })))).toBe(true);
      expect(accepted(await verify(await token({ exp: nowS() })))).toBe(false);
    });
  });

  it('is never in the log, nor is anything that it carries', async () => {
    for (const bad of [
      await token({ sub: 'Zuckerhut', aud: 'Zuckerhut', iss: 'Zuckerhut' }),
      await token({}, { kid: 'next' }),
    ]) {
      await verify(bad);
      for (const part of bad.split('.')) expect(JSON.stringify(logged)).not.toContain(part);
    }
    expect(logged.length).toBeGreaterThanOrEqual(2);
    expect(JSON.stringify(logged)).not.toContain('Zuckerhut');
  });
});

describe('the keys of the issuer', () => {
  it('are fetched once, however many tokens come at the same time', async () => {
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, index) => token({ sub: `user ${index}` })));
    const outcomes = await Promise.all(tokens.map((each) => verify(each)));
    expect(outcomes.every(accepted)).toBe(true);
    expect(issuer.fetches).toBe(1);
  });

  it('are fetched again for a key that is not known, once in a while', async () => {
    await verify(await token());
    const fresh = await token({}, { kid: 'next' });
    expect(await verify(fresh)).toMatchObject(INVALID);
    expect(issuer.fetches).toBe(1);

    ring.publish('ES256', 'next');
    issuer.documents[`${ISSUER}/keys`] = ring.jwks;
    clock.advance(COOLDOWN_MS);
    expect(accepted(await verify(fresh))).toBe(true);
    expect(issuer.fetches).toBe(2);

    const strangers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => token({}, { kid: 'unpublished', header: { kid: `made-up-${index}` } })),
    );
    for (const stranger of strangers) expect(await verify(stranger)).toMatchObject(INVALID);
    expect(issuer.fetches).toBe(2);
    clock.advance(COOLDOWN_MS);
    await Promise.all(strangers.map((stranger) => verify(stranger)));
    expect(issuer.fetches).toBe(3);
  });

  it('that the issuer has withdrawn are not believed once it was asked again', async () => {
    const old = await token();
    expect(accepted(await verify(old))).toBe(true);
    ring.publish('next');
    issuer.documents[`${ISSUER}/keys`] = ring.jwks;
    clock.advance(FRESH_MS + 1);
    // Judged by what is known while the new ones are fetched.
    expect(accepted(await verify(old))).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
    expect(await verify(old)).toMatchObject(INVALID);
    expect(issuer.fetches).toBe(2);
  });

  it('that cannot be had let nobody in, and nobody is told that their token is bad', async () => {
    issuer.isDown = true;
    const good = await token();
    expect(await verify(good)).toMatchObject({
      refused: 'service_unavailable',
      details: { retryAfter: 5 },
      headers: { 'Retry-After': '5' },
    });
    clock.advance(SECOND_MS);
    expect(await verify(good)).toMatchObject({ refused: 'service_unavailable', details: { retryAfter: 4 } });
    expect(issuer.asked).toHaveLength(1);
    issuer.isDown = false;
    clock.advance(RETRY_MS);
    expect(accepted(await verify(good))).toBe(true);
  });

  it('go on to work while the issuer is away, for a day', async () => {
    expect(accepted(await verify(await token()))).toBe(true);
    issuer.isDown = true;
    for (let hour = 0; hour < 24; hour++) {
      clock.advance(DAY_MS / 24);
      expect(accepted(await verify(await token()))).toBe(true);
    }
    // A key that is not among them may be new: who knows?
    clock.advance(-1);
    expect(await verify(await token({}, { kid: 'next' }))).toMatchObject({ refused: 'service_unavailable' });
    clock.advance(2);
    expect(await verify(await token())).toMatchObject({ refused: 'service_unavailable' });
    issuer.isDown = false;
    clock.advance(RETRY_MS);
    expect(accepted(await verify(await token()))).toBe(true);
  });

  it('are asked for again soon when the clock was set back', async () => {
    issuer.isDown = true;
    await verify(await token());
    issuer.isDown = false;
    clock.advance(-DAY_MS);
    expect(accepted(await verify(await token()))).toBe(true);
  });

  it.each<[string, Record<string, unknown>]>([
    ['no discovery document', { [`${ISSUER}/.well-known/openid-configuration`]: undefined }],
    [
      'a document of somebody else',
      { [`${ISSUER}/.well-known/openid-configuration`]: { issuer: 'https://x.example', jwks_uri: `${ISSUER}/keys` } },
    ],
    ['no place', { [`${ISSUER}/.well-known/openid-configuration`]: { issuer: ISSUER } }],
    [
      'a place that others can write on',
      { [`${ISSUER}/.well-known/openid-configuration`]: { issuer: ISSUER, jwks_uri: 'http://id.example.com/keys' } },
    ],
    ['no keys', { [`${ISSUER}/keys`]: {} }],
    ['keys that are no JSON', { [`${ISSUER}/keys`]: '<html>' }],
    ['keys that are a list', { [`${ISSUER}/keys`]: [] }],
  ])('are not to be had with %s', async (_what, documents) => {
    Object.assign(issuer.documents, documents);
    expect(await verify(await token())).toMatchObject({ refused: 'service_unavailable' });
    expect(logged).toContainEqual(expect.objectContaining({ issuer: ISSUER }));
  });

  it('come from where the operator says, and nothing else is asked then', async () => {
    verify = verifierWith({ jwksUrl: 'https://keys.example.com/jwks' });
    issuer.documents = { 'https://keys.example.com/jwks': ring.jwks };
    expect(accepted(await verify(await token()))).toBe(true);
    expect(issuer.asked).toEqual(['https://keys.example.com/jwks']);
  });

  it('are found for a token that names none, where there is only one', async () => {
    ring.publish('ES256');
    issuer.documents[`${ISSUER}/keys`] = ring.jwks;
    expect(accepted(await verify(await token({}, { header: { kid: undefined } })))).toBe(true);
  });

  it('are not guessed where there are several', async () => {
    await ring.add('twin', 'ES256');
    issuer.documents[`${ISSUER}/keys`] = ring.jwks;
    expect(await verify(await token({}, { header: { kid: undefined } }))).toMatchObject(INVALID);
  });
});

describe('what looks like a token', () => {
  it.each(['a.b.c', 'a.b.', 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2ln_-'])('%s does', (text) => {
    expect(looksLikeToken(text)).toBe(true);
  });

  it.each(['hk_live_abcdefgh', 'a.b', 'a.b.c.d', '.b.c', 'a..c', 'a.b.c=', 'v1.secret/key.x', ''])(
    '%s does not',
    (text) => {
      expect(looksLikeToken(text)).toBe(false);
    },
  );
});
