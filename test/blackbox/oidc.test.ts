import type { JWTPayload } from 'jose';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Config } from '../../src/config.ts';
import { ROLE_SCOPES } from '../../src/protocol/trust/scopes.ts';
import { realClock } from '../../src/system/real.ts';
import { type Answer, Api } from '../support/api.ts';
import { everythingAtRest } from '../support/at-rest.ts';
import { freshFolder, migratedDatabase } from '../support/database.ts';
import { register, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { startHostWith, startTestHost, type TestHost } from '../support/host.ts';
import { approval, eventsOf, governanceGate, resolve, waitingRun } from '../support/interrupts.ts';
import { IssuerKeyRing, type Signing, startIssuer, type TestIssuer } from '../support/issuer.ts';
import { stillClock } from '../support/manual-clock.ts';
import { loadSchemas } from '../support/schemas.ts';
import { STORES, storesFor } from '../support/stores.ts';

/** core.md 4.6: people sign in with an issuer of theirs. The issuer is a real one, on this machine. */

const AUDIENCE = 'https://capstan.example.com';
const SOMETHING = '/v1/workflows/conformance-noop';
const KEYS = '/v1/host/capstan/keys';
const SKEW_S = 60;
const COOLDOWN_MS = 30_000;
/** In every subject, to search for. */
const MARKER = 'Kanarienvogel';

const ring = new IssuerKeyRing();
let issuer: TestIssuer;
beforeAll(async () => {
  await ring.add('first', 'ES256');
  await ring.add('rsa', 'RS256');
  await ring.add('second', 'ES256', { isPublished: false });
  issuer = await startIssuer(ring);
});
afterAll(() => issuer.stop());

/** The machine's clock, which a test may move on. */
function movableClock() {
  let aheadMs = 0;
  return {
    clock: { ...realClock, now: () => realClock.now() + aheadMs },
    advance: (ms: number): void => {
      aheadMs += ms;
    },
  };
}

const nowS = (): number => Math.floor(Date.now() / 1_000);

function token(claims: JWTPayload = {}, how: Signing = {}): Promise<string> {
  const base = { iss: issuer.url, aud: AUDIENCE, sub: `${MARKER}-ada@example.com`, tenant: 'alpha', role: 'editor' };
  return ring.sign({ ...base, ...claims }, nowS(), { kid: 'first', ...how });
}

const settings = (): Config['oidc'] => ({
  issuer: issuer.url,
  audience: AUDIENCE,
  tenantClaim: 'tenant',
  roleClaim: 'role',
  groupClaim: 'groups',
  workspaceClaim: 'workspace',
  clockSkewS: SKEW_S,
});

function expectNothingOf(credential: string, { text, headers }: Answer): void {
  const said = text + JSON.stringify([...headers]);
  for (const part of credential.split('.').filter((piece) => piece !== '')) expect(said).not.toContain(part);
  expect(said).not.toContain(MARKER);
}

describe.each(storesFor('a token'))('a token, on %s', (kind) => {
  const { clock, advance } = movableClock();
  let host: TestHost;
  beforeAll(async () => {
    ring.publish('first', 'rsa');
    host = await startTestHost(kind, inject('postgresUrl'), { oidc: settings() }, clock);
  });
  afterAll(() => host.stop());

  const by = async (claims: JWTPayload = {}, how: Signing = {}): Promise<Api> =>
    new Api(host.url, await token(claims, how));

  it('is announced', async () => {
    const { body } = await host.anonymous.get('/.well-known/openwop');
    expect(body.auth.profiles).toContain('openwop-auth-oidc-user-bearer');
    expect(body.auth.oidc).toEqual({
      supported: true,
      issuers: [issuer.url],
      audience: AUDIENCE,
      supportedScopeMapping: 'group-claim',
    });
    expect(body.interrupt.approverRouting.refKinds.toSorted()).toEqual(['group', 'role']);
    expect(loadSchemas().discovery(body)).toEqual([]);
  });

  it.each(['first', 'rsa'])(
    'signed with the key %s lets its bearer in, under a name that says nothing',
    async (kid) => {
      const api = await by({}, { kid });
      const snapshot = await api.ended(await api.run('conformance-noop'));
      expect(snapshot.status).toBe('completed');
      expect(snapshot.owner).toEqual({ tenant: 'alpha', principal: expect.stringMatching(/^user-[0-9a-f]{32}$/) });
      expect(loadSchemas().snapshot(snapshot)).toEqual([]);
      expect(JSON.stringify([snapshot, await api.events(snapshot.runId)])).not.toMatch(/Kanarienvogel|example\.com/);
    },
  );

  it('stands for the same person as the next one', async () => {
    const principals = new Set<string>();
    for (const claims of [{}, { exp: nowS() + 60 }, { role: 'owner' }]) {
      const api = await by(claims);
      principals.add((await api.get(`/v1/runs/${await api.run('conformance-noop')}`)).body.owner.principal);
    }
    expect(principals.size).toBe(1);
  });

  it('gives what its role gives, and without one that is known nothing', async () => {
    expect((await (await by({ role: 'viewer' })).get(SOMETHING)).status).toBe(200);
    const start = await (await by({ role: 'viewer' })).post('/v1/runs', { workflowId: 'conformance-noop' });
    expectRefusal(start, 403, 'forbidden');
    expect(start.body.details).toEqual({ scopeRequired: 'runs:create' });
    for (const role of [undefined, 'admin', [], ['staff']]) {
      const answer = await (await by({ role })).get(SOMETHING);
      expectRefusal(answer, 403, 'forbidden');
      expect(answer.body.details).toEqual({ scopeRequired: 'manifest:read' });
    }
    expect((await (await by({ role: ['staff', 'viewer'] })).get(SOMETHING)).status).toBe(200);
  });

  it('sees what its tenant has, and nothing of others', async () => {
    const runId = await host.as('editor').run('conformance-noop');
    expect((await (await by()).get(`/v1/runs/${runId}`)).status).toBe(200);
    expectRefusal(await (await by({ tenant: 'beta' })).get(`/v1/runs/${runId}`), 404, 'not_found');
    expectRefusal(await (await by({ workspace: 'north' })).get(`/v1/runs/${runId}`), 404, 'not_found');
    const inNorth = await host.as('workspace').run('conformance-noop');
    expect((await (await by({ workspace: 'north' })).get(`/v1/runs/${inNorth}`)).status).toBe(200);
    expectRefusal(await (await by({ workspace: 'south' })).get(`/v1/runs/${inNorth}`), 404, 'not_found');
    const ofTests = await host.as('test').run('conformance-noop');
    expectRefusal(await (await by()).get(`/v1/runs/${ofTests}`), 404, 'not_found');
  });

  describe('is refused', () => {
    const forged = async (header: object, signature = ''): Promise<string> => {
      const [, body] = (await token()).split('.');
      return `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${body}.${signature}`;
    };
    const withPublicKey = (): Promise<string> => {
      const { n } = ring.jwks.keys.find(({ kid }) => kid === 'rsa')!;
      return token({}, { kid: 'rsa', alg: 'HS256', key: new TextEncoder().encode(n!) });
    };

    it.each<[string, () => Promise<string>]>([
      ['of another issuer', () => token({ iss: 'https://id.example.org' })],
      ['for another audience', () => token({ aud: 'https://elsewhere.example.com' })],
      ['that has expired', () => token({ exp: nowS() - 3_600 })],
      ['that has expired, just beyond the skew', () => token({ exp: nowS() - SKEW_S - 5 })],
      ['that is not good yet', () => token({ nbf: nowS() + 3_600 })],
      ['that was made in the future', () => token({ iat: nowS() + 3_600 })],
      ['that never ends', () => token({ exp: undefined as never })],
      ['of no tenant', () => token({ tenant: undefined })],
      ['of a tenant that cannot be', () => token({ tenant: 'alpha#test' })],
      ['of nobody', () => token({ sub: undefined as never })],
      ['without a signature', () => forged({ alg: 'none' })],
      ['without a signature, for a known key', () => forged({ alg: 'none', kid: 'first' }, 'c2ln')],
      ['signed with the public key as a secret', withPublicKey],
      ['signed with a key that is not published', () => token({}, { kid: 'second' })],
      ['signed with another key than it says', () => token({}, { kid: 'second', header: { kid: 'first' } })],
      ['that only looks like one', async () => `${MARKER}.${MARKER}.${MARKER}`],
    ])('%s', async (_what, make) => {
      const text = await make();
      for (const path of [SOMETHING, '/v1/runs/absent', '/v1/nowhere']) {
        const answer = await new Api(host.url, text).get(path);
        expectRefusal(answer, 401, 'unauthenticated');
        expectNothingOf(text, answer);
      }
    });

    it('not when its times are within the skew', async () => {
      const soon = SKEW_S - 20;
      for (const times of [{ exp: nowS() - soon }, { nbf: nowS() + soon }, { iat: nowS() + soon }]) {
        expect((await (await by(times)).get(SOMETHING)).status).toBe(200);
      }
    });
  });

  it('signed with a new key is believed once the issuer was asked again, which is not often', async () => {
    expect((await (await by()).get(SOMETHING)).status).toBe(200);
    ring.publish('second', 'rsa', 'first');
    const fresh = await by({}, { kid: 'second' });
    const before = issuer.fetches;
    for (let times = 0; times < 5; times++) expectRefusal(await fresh.get(SOMETHING), 401, 'unauthenticated');
    expect(issuer.fetches).toBe(before);
    advance(COOLDOWN_MS);
    const answers = await Promise.all(Array.from({ length: 5 }, () => fresh.get(SOMETHING)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(issuer.fetches).toBe(before + 1);
  });

  it('that is known goes on to work while the issuer is away; keys never needed it', async () => {
    expect((await (await by()).get(SOMETHING)).status).toBe(200);
    issuer.setDown(true);
    try {
      expect((await (await by({ sub: 'somebody new' })).get(SOMETHING)).status).toBe(200);
      expect((await host.as('viewer').get(SOMETHING)).status).toBe(200);
      advance(COOLDOWN_MS);
      const unknown = await by({}, { kid: 'second', header: { kid: 'third' } });
      const answer = await unknown.get(SOMETHING);
      expectRefusal(answer, 503, 'service_unavailable');
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      expect(answer.body.details.retryAfter).toBe(Number(answer.headers.get('retry-after')));
      expect((await (await by()).get(SOMETHING)).status).toBe(200);
    } finally {
      issuer.setDown(false);
      advance(COOLDOWN_MS);
    }
  });

  describe('of somebody who votes', () => {
    const ada = (): Promise<Api> => by();
    const bob = (): Promise<Api> => by({ sub: `${MARKER}-bob` });

    it('counts for that person, whatever name they give', async () => {
      const gate = approval('gate', { requiredApprovals: 2 });
      const { runId } = await waitingRun(host.as('editor'), await register(host.as('editor'), workflow([gate])));
      for (const voter of ['one', 'two', 'three']) {
        expect((await resolve(await ada(), runId, 'gate', { action: 'accept', voter })).status).toBe(200);
      }
      expect((await host.as('editor').get(`/v1/runs/${runId}`)).body.status).toBe('waiting-approval');
      expect((await resolve(await bob(), runId, 'gate', { action: 'accept' })).status).toBe(200);
      expect((await host.as('editor').ended(runId)).status).toBe('completed');
      const received = await eventsOf(host.as('editor'), runId, 'approval.received');
      const voters = received.map(({ payload }) => payload.decidedBy);
      expect(new Set(voters).size).toBe(2);
      for (const voter of voters) expect(voter).toMatch(/^user-[0-9a-f]{32}$/);
    });

    it('cannot be given by a program in their name', async () => {
      const gate = approval('gate', { requiredApprovals: 2 });
      const { runId } = await waitingRun(host.as('editor'), await register(host.as('editor'), workflow([gate])));
      const api = await ada();
      const { principal } = (await api.get(`/v1/runs/${await api.run('conformance-noop')}`)).body.owner;
      await resolve(host.as('editor'), runId, 'gate', { action: 'accept', voter: principal });
      await resolve(host.as('editor'), runId, 'gate', { action: 'accept', voter: principal });
      expect((await host.as('editor').get(`/v1/runs/${runId}`)).body.status).toBe('waiting-approval');
      expect((await resolve(api, runId, 'gate', { action: 'accept' })).status).toBe(200);
      expect((await host.as('editor').ended(runId)).status).toBe('completed');
    });

    it.each([
      ['a group', { approverGroupRefs: ['board', 'finance'] }, { groups: ['staff', 'finance'] }, { groups: ['staff'] }],
      ['a role', { approverRoleRefs: ['reviewer'] }, { role: 'owner' }, { groups: ['reviewer'] }],
      [
        'a role of the identity provider',
        { approverRoleRefs: ['controller'] },
        { role: ['editor', 'controller'] },
        { groups: ['controller'] },
      ],
    ])('counts at an approval that names %s they have, and at no other', async (_what, named, has, hasNot) => {
      const gate = approval('gate', named);
      const { runId } = await waitingRun(host.as('editor'), await register(host.as('editor'), workflow([gate])));
      expectRefusal(await resolve(await by(hasNot), runId, 'gate', { action: 'accept' }), 403, 'forbidden');
      const labelled = await resolve(await by(has), runId, 'gate', { action: 'accept', voter: 'ada' });
      expectRefusal(labelled, 403, 'forbidden');
      expect(await eventsOf(host.as('editor'), runId, 'approval.received')).toEqual([]);
      expect((await resolve(await by(has), runId, 'gate', { action: 'accept' })).status).toBe(200);
      expect((await host.as('editor').ended(runId)).status).toBe('completed');
      expect(JSON.stringify(await host.as('editor').events(runId))).not.toContain('staff');
    });

    it('opens a gate that asks for a role if they have it, and leaves a trace if they do not', async () => {
      const gate = governanceGate('gate', { requiredRole: 'reviewer' });
      const { runId } = await waitingRun(host.as('editor'), await register(host.as('editor'), workflow([gate])));
      const denied = await resolve(await ada(), runId, 'gate', { decision: 'granted' });
      expectRefusal(denied, 403, 'forbidden');
      const [decided] = await eventsOf(host.as('editor'), runId, 'authorization.decided');
      expect(decided.payload).toEqual({
        principal: expect.stringMatching(/^user-[0-9a-f]{32}$/),
        action: 'approval.granted',
        resource: 'gate',
        allowed: false,
      });
      const granted = await resolve(await by({ role: 'reviewer' }), runId, 'gate', { decision: 'granted' });
      expect(granted.status, granted.text).toBe(200);
      expect((await host.as('editor').ended(runId)).status).toBe('completed');
    });
  });

  describe('of an owner', () => {
    const owner = (claims: JWTPayload = {}): Promise<Api> => by({ role: 'owner', ...claims });

    it('makes keys that are their own principals, and no stronger than their maker', async () => {
      const made = await (await owner()).post(KEYS, { name: 'for the build', role: 'owner' });
      expect(made.status, made.text).toBe(201);
      expect(made.body.scopes).toEqual(ROLE_SCOPES.owner);
      const api = new Api(host.url, made.body.key);
      const { principal } = (await api.get(`/v1/runs/${await api.run('conformance-noop')}`)).body.owner;
      expect(principal).toBe(made.body.id);
      expectRefusal(await (await by({ role: 'reviewer' })).post(KEYS, { name: 'x' }), 403, 'forbidden');
    });

    it('may revoke the last key of a tenant: they can still get in', async () => {
      const tenant = `tenant-of-${kind}`;
      const { id, key } = (await (await owner({ tenant })).post(KEYS, { name: 'only one', role: 'owner' })).body;
      expectRefusal(await new Api(host.url, key).request('DELETE', `${KEYS}/${id}`), 409, 'conflict');
      expect((await (await owner({ tenant })).request('DELETE', `${KEYS}/${id}`)).status).toBe(204);
      expectRefusal(await new Api(host.url, key).get(KEYS), 401, 'key_revoked');
    });
  });
});

describe('a token', () => {
  it('has a rate of its own', async () => {
    const slow = await startTestHost('sqlite', undefined, { oidc: settings(), requestsPerSecond: 1 }, stillClock());
    try {
      const mine = await token();
      const answers = await Promise.all(Array.from({ length: 8 }, () => new Api(slow.url, mine).get(SOMETHING)));
      const limited = answers.filter(({ status }) => status === 429);
      expect(limited).toHaveLength(6);
      for (const answer of limited) expectRefusal(answer, 429, 'rate_limited');
      expect((await new Api(slow.url, await token({ sub: 'bob' })).get(SOMETHING)).status).toBe(200);
    } finally {
      await slow.stop();
    }
  });
});

describe('without keys of the issuer', () => {
  it('nobody gets in with a token, nobody is told that it is bad, and all is well once there are some', async () => {
    const { clock, advance } = movableClock();
    const host = await startTestHost('sqlite', undefined, { oidc: settings() }, clock);
    issuer.setDown(true);
    try {
      const api = new Api(host.url, await token());
      for (const path of [SOMETHING, '/v1/nowhere']) {
        const answer = await api.get(path);
        expectRefusal(answer, 503, 'service_unavailable');
        expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      }
      expect((await host.as('viewer').get(SOMETHING)).status).toBe(200);
      issuer.setDown(false);
      advance(COOLDOWN_MS);
      expect((await api.get(SOMETHING)).status).toBe(200);
    } finally {
      issuer.setDown(false);
      await host.stop();
    }
  });
});

describe.each(STORES)('what a token says, on %s', (kind) => {
  it('is in no line of the log and nowhere at rest', async () => {
    const folder = freshFolder();
    const databaseUrl = kind === 'postgres' ? await migratedDatabase(inject('postgresUrl')) : undefined;
    const host = await startHostWith({
      CAPSTAN_DATA: folder.path,
      CAPSTAN_LOG: 'trace',
      CAPSTAN_OIDC_ISSUER: issuer.url,
      CAPSTAN_OIDC_AUDIENCE: AUDIENCE,
      CAPSTAN_OIDC_JWKS_URL: `${issuer.url}/keys`,
      CAPSTAN_OIDC_ROLE_CLAIM: 'access.roles',
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
    });
    try {
      const roles = { access: { roles: ['staff', 'editor'] } };
      const good = await token(roles);
      const bad = await Promise.all([
        token({ exp: nowS() - 3_600 }),
        token({ aud: MARKER }),
        token({ iss: `https://${MARKER}.example.com` }),
        token({}, { kid: 'second', header: { kid: MARKER } }),
      ]);
      const api = new Api(host.url, good);
      const header = { 'idempotency-key': 'a-run-of-somebody' };
      const started = await api.post('/v1/runs', { workflowId: 'conformance-noop' }, header);
      expect(started.status, started.text).toBe(201);
      await api.ended(started.body.runId);
      for (const text of bad) expectRefusal(await new Api(host.url, text).get(SOMETHING), 401, 'unauthenticated');
      await host.stop();
      const output = host.output();
      expect(output).toContain('a token was refused');
      expect(output).toMatch(/"keyId":"user-[0-9a-f]{32}"/);
      const kept = await everythingAtRest(folder.path, databaseUrl);
      expect(kept.includes(started.body.runId)).toBe(true);
      for (const text of [output, kept]) {
        expect(text.includes(MARKER)).toBe(false);
        for (const credential of [good, ...bad]) {
          for (const part of credential.split('.')) expect(text.includes(part)).toBe(false);
        }
      }
    } finally {
      await host.stop();
      folder.remove();
    }
  });
});
