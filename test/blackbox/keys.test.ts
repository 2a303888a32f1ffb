import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ROLE_SCOPES, ROLES } from '../../src/protocol/trust/scopes.ts';
import { type Answer, Api } from '../support/api.ts';
import { everythingAtRest } from '../support/at-rest.ts';
import { freshDatabase, freshFolder, migratedDatabase } from '../support/database.ts';
import { unique } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS as KEYS_OF_HOST, startHostWith, startTestHost, type TestHost } from '../support/host.ts';
import { keyRecords } from '../support/keys.ts';
import { onEachStore, STORES } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** API keys over the wire: who may make which, how long they hold, and where they can never be seen. */

const KEYS = '/v1/host/capstan/keys';
const PRINCIPALS = '/v1/host/capstan/principals';
const SOMETHING = '/v1/workflows/conformance-noop';
const HOUR_MS = 60 * 60 * 1_000;

const inAlpha = (key: string, rest: object) => ({ key, tenant: 'alpha', principal: key, ...rest });
const NORTH = inAlpha('manager-of-north', { role: 'owner', workspace: 'north' });
const TEST_OWNER = inAlpha('hk_test_owner-of-alpha', { role: 'owner' });
const ONLY_MANAGES = inAlpha('only-manages', { scopes: ['keys:manage', 'runs:read'] });
const apiKeys = keyRecords([NORTH, TEST_OWNER, ONLY_MANAGES]);

type Body = Answer['body'];

async function make(api: Api, body: object): Promise<Body> {
  const answer = await api.post(KEYS, { name: 'a key', ...body });
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
}

async function list(api: Api): Promise<Body[]> {
  return (await api.get(`${KEYS}?limit=200`)).body.items;
}

async function find(api: Api, id: string): Promise<Body> {
  return (await list(api)).find((item) => item.id === id);
}

const revoke = (api: Api, id: string): Promise<Answer> => api.request('DELETE', `${KEYS}/${id}`);
const rotate = (api: Api, id: string, body?: object): Promise<Answer> => api.post(`${KEYS}/${id}:rotate`, body);

/** The status that a key gets for something harmless. */
const use = (url: string, key: string): Promise<Answer> => new Api(url, key).get(SOMETHING);

onEachStore(
  'API keys',
  (host) => {
    const owner = (): Api => host().as('owner');
    const by = (key: string): Api => new Api(host().url, key);

    it('a key is made, used, found without itself, and revoked', async () => {
      const made = await make(owner(), { name: 'for the build', role: 'editor' });
      expect(made).toEqual({
        id: expect.stringMatching(/^key-[0-9a-z]{22}$/),
        name: 'for the build',
        key: expect.stringMatching(/^hk_live_[\w-]{32}$/),
        prefix: made.key.slice(0, 12),
        role: 'editor',
        scopes: ROLE_SCOPES.editor,
        createdAt: expect.stringMatching(/Z$/),
      });
      const { key, ...rest } = made;
      expect(await find(owner(), made.id)).toEqual(rest);

      const runId = await by(key).run('conformance-noop');
      const snapshot = await by(key).ended(runId);
      expect(snapshot.owner).toEqual({ tenant: 'alpha', principal: made.id });

      expect((await revoke(owner(), made.id)).status).toBe(204);
      expectRefusal(await use(host().url, key), 401, 'key_revoked');
      expect((await find(owner(), made.id)).revokedAt).toMatch(/Z$/);
      // What is over stays as it is.
      const { revokedAt } = await find(owner(), made.id);
      expect((await revoke(owner(), made.id)).status).toBe(204);
      expect((await find(owner(), made.id)).revokedAt).toBe(revokedAt);
    });

    it('principals have the names of their keys, for whoever may read runs', async () => {
      const ci = await make(owner(), { name: 'ci' });
      const laptop = await make(owner(), { name: 'laptop', role: 'viewer', person: 'bob' });
      const chosen = await make(owner(), { name: 'nightly', principal: unique('nightly') });
      await revoke(owner(), ci.id);
      const ids = [ci.id, laptop.id, 'nobody-has-this', KEYS_OF_HOST.editor.principal];
      const named = (api: Api, ...principals: string[]) => api.get(`${PRINCIPALS}?principal=${principals.join(',')}`);
      expect((await named(by(laptop.key), ...ids)).body).toEqual({
        items: [
          { principal: KEYS_OF_HOST.editor.principal },
          { principal: ci.id, name: 'ci' },
          { principal: laptop.id, name: 'laptop', person: 'bob' },
        ],
      });
      const rotated = (await rotate(owner(), laptop.id)).body;
      expect((await named(by(rotated.key), laptop.id)).body.items).toEqual([
        { principal: laptop.id, name: 'laptop', person: 'bob' },
      ]);
      expect((await named(host().as('other'), ...ids)).body).toEqual({ items: [] });
      expect((await named(by(TEST_OWNER.key), ...ids)).body).toEqual({ items: [] });
      expectRefusal(await named(by(chosen.key), ci.id), 403, 'forbidden');
      for (const wrong of ['', 'a,', 'a b', Array(51).fill('a').join(',')])
        expectRefusal(await named(owner(), wrong), 400, 'validation_error');
    });

    it('principals of a workspace see the names of what acts there', async () => {
      const [north, south, everywhere] = await Promise.all(
        [{ workspace: 'north' }, { workspace: 'south' }, {}].map((rest) => make(owner(), rest)),
      );
      const { body } = await by(NORTH.key).get(`${PRINCIPALS}?principal=${north.id},${south.id},${everywhere.id}`);
      expect(body.items.map(({ principal }: Body) => principal).sort()).toEqual([north.id, everywhere.id].sort());
    });

    it('the list has pages, newest first', async () => {
      const ids: string[] = [];
      for (const name of ['one', 'two', 'three']) ids.unshift((await make(owner(), { name })).id);
      const first = await owner().get(`${KEYS}?limit=2`);
      expect(first.body.items.map(({ id }: Body) => id)).toEqual(ids.slice(0, 2));
      const second = await owner().get(`${KEYS}?limit=2&cursor=${first.body.nextCursor}`);
      expect(second.body.items[0].id).toBe(ids[2]);
      expectRefusal(await owner().get(`${KEYS}?cursor=nonsense!`), 400, 'validation_error');
    });

    it('a key has its role, or the scopes it was given, or nothing', async () => {
      const scoped = await make(owner(), { scopes: ['runs:read', 'manifest:read'] });
      expect(scoped).not.toHaveProperty('role');
      expect(scoped.scopes).toEqual(['runs:read', 'manifest:read']);
      expect((await use(host().url, scoped.key)).status).toBe(200);
      expectRefusal(await by(scoped.key).post('/v1/runs', { workflowId: 'conformance-noop' }), 403, 'forbidden');
      const empty = await make(owner(), {});
      expect(empty.scopes).toEqual([]);
      expectRefusal(await use(host().url, empty.key), 403, 'forbidden');
    });

    it('a principal may be chosen, and is opaque', async () => {
      const principal = unique('build-agent');
      const { key } = await make(owner(), { role: 'editor', principal });
      expect((await by(key).get(`/v1/runs/${await by(key).run('conformance-noop')}`)).body.owner.principal).toBe(
        principal,
      );
      const another = (await make(owner(), {})).id;
      for (const wrong of ['ada@example.com', 'Ada Lovelace', '', 'x'.repeat(129), another, `user-${'0'.repeat(32)}`]) {
        const answer = await owner().post(KEYS, { name: 'x', principal: wrong });
        expectRefusal(answer, 400, 'validation_error');
        expect(answer.body.details.field).toBe('principal');
      }
    });

    it.each([
      ['no name', {}],
      ['an empty name', { name: '' }],
      ['an unknown role', { name: 'x', role: 'admin' }],
      ['an unknown scope', { name: 'x', scopes: ['runs:read', 'everything'] }],
      ['a scope twice', { name: 'x', scopes: ['runs:read', 'runs:read'] }],
      ['a role and scopes', { name: 'x', role: 'viewer', scopes: ['runs:read'] }],
      ['an end in the past', { name: 'x', expiresAt: new Date(Date.now() - 1_000).toISOString() }],
      ['an end that is no time', { name: 'x', expiresAt: 'tomorrow' }],
      ['a workspace with blanks', { name: 'x', workspace: 'north south' }],
      ['a principal that is a secret', { name: 'x', principal: 'sk-abcdefghijklmnopqrstuvwx0123' }],
      ['a tenant', { name: 'x', tenant: 'beta' }],
      ['a key of one’s own', { name: 'x', key: 'hk_live_mine-and-only-mine' }],
    ])('%s is refused, and makes nothing', async (_what, body) => {
      const before = await list(owner());
      expectRefusal(await owner().post(KEYS, body), 400, 'validation_error');
      expect(await list(owner())).toEqual(before);
    });

    it('a secret in a name is not kept', async () => {
      const made = await make(owner(), { name: 'uses sk-abcdefghijklmnopqrstuvwx0123' });
      expect(made.name).toBe('uses [REDACTED]');
      expect((await find(owner(), made.id)).name).toBe('uses [REDACTED]');
    });

    it('an end is kept, and said', async () => {
      const expiresAt = new Date(Date.now() + HOUR_MS).toISOString();
      const made = await make(owner(), { role: 'viewer', expiresAt });
      expect(made.expiresAt).toBe(expiresAt);
      expect((await use(host().url, made.key)).status).toBe(200);
      const rotated = await rotate(owner(), made.id);
      expect(rotated.body.expiresAt).toBe(expiresAt);
    });

    describe('nobody gives more than they have', () => {
      it.each(ROLES)('an owner may give the role %s', async (role) => {
        expect((await make(owner(), { role })).scopes).toEqual(ROLE_SCOPES[role]);
      });

      it('whoever was given scopes gives those, and no role', async () => {
        const api = by(ONLY_MANAGES.key);
        expect((await make(api, { scopes: ['runs:read'] })).scopes).toEqual(['runs:read']);
        const tooMuch = await api.post(KEYS, { name: 'x', scopes: ['runs:read', 'runs:create'] });
        expectRefusal(tooMuch, 403, 'forbidden');
        expect(tooMuch.body.details.scopeRequired).toBe('runs:create');
        for (const role of ROLES) {
          const answer = await api.post(KEYS, { name: 'x', role });
          expectRefusal(answer, 403, 'forbidden');
          expect(answer.body.details.scopeRequired).toBe(ROLE_SCOPES[role].find((scope) => scope !== 'runs:read'));
        }
      });

      it('whoever has every scope of a role but not the role cannot give it', async () => {
        const { key } = await make(owner(), { scopes: ROLE_SCOPES.owner });
        const answer = await by(key).post(KEYS, { name: 'x', role: 'viewer' });
        expectRefusal(answer, 403, 'forbidden');
        expect(answer.body.details).toEqual({ scopeRequired: 'keys:manage', roleRequired: 'viewer' });
      });

      it('whoever rotates a key would see the new one, so it must not be above their own', async () => {
        const strong = await make(owner(), { role: 'viewer' });
        const answer = await rotate(by(ONLY_MANAGES.key), strong.id);
        expectRefusal(answer, 403, 'forbidden');
        expect((await use(host().url, strong.key)).status).toBe(200);
      });

      it.each(['viewer', 'editor', 'reviewer'] as const)('the role %s manages no keys', async (role) => {
        const answers = await Promise.all([
          host().as(role).get(KEYS),
          host().as(role).post(KEYS, { name: 'x' }),
          rotate(host().as(role), 'key-0'),
          revoke(host().as(role), 'key-0'),
        ]);
        for (const answer of answers) {
          expectRefusal(answer, 403, 'forbidden');
          expect(answer.body.details).toEqual({ scopeRequired: 'keys:manage' });
        }
      });
    });

    describe('keys of others', () => {
      async function expectAbsent(mine: Api, other: Api): Promise<void> {
        const made = await make(mine, { role: 'viewer' });
        const nowhere = await revoke(other, 'key-nobodyhasthisone');
        for (const answer of [await rotate(other, made.id), await revoke(other, made.id)]) {
          expectRefusal(answer, 404, 'not_found');
          expect(answer.text).toBe(nowhere.text);
        }
        expect(await find(other, made.id)).toBeUndefined();
        expect(await find(mine, made.id)).toMatchObject({ id: made.id });
        expect((await use(host().url, made.key)).status).toBe(200);
      }

      it('are absent: of another tenant', () => expectAbsent(owner(), host().as('other')));
      it('are absent: live ones for a test key', () => expectAbsent(owner(), by(TEST_OWNER.key)));
      it('are absent: test ones for a live key', () => expectAbsent(by(TEST_OWNER.key), owner()));
      it('are absent: those of the whole tenant for one workspace', () => expectAbsent(owner(), by(NORTH.key)));

      it('a test key makes test keys', async () => {
        const { key } = await make(by(TEST_OWNER.key), { role: 'viewer' });
        expect(key).toMatch(/^hk_test_/);
      });

      it('whoever is bound to a workspace makes keys of that workspace alone', async () => {
        const made = await make(by(NORTH.key), { role: 'editor' });
        const runId = await by(made.key).run('conformance-noop');
        expect((await by(made.key).get(`/v1/runs/${runId}`)).body.owner.workspace).toBe('north');
        expect((await make(by(NORTH.key), { workspace: 'north' })).id).toMatch(/^key-/);
        const elsewhere = await by(NORTH.key).post(KEYS, { name: 'x', workspace: 'south' });
        expectRefusal(elsewhere, 403, 'forbidden');
        expect(elsewhere.body.details.scopeRequired).toBe('keys:manage');
        expect(await find(owner(), made.id)).toMatchObject({ id: made.id });
      });

      it('whoever has the whole tenant makes keys of any workspace', async () => {
        const made = await make(owner(), { role: 'editor', workspace: 'north' });
        const runId = await host().as('workspace').run('conformance-noop');
        expect((await by(made.key).get(`/v1/runs/${runId}`)).status).toBe(200);
        expect(await find(by(NORTH.key), made.id)).toMatchObject({ id: made.id });
      });

      it('configured keys are not listed: they are not managed here', async () => {
        const ids = (await list(owner())).map(({ id }) => id);
        expect(ids.filter((id) => id.startsWith('key-configured'))).toEqual([]);
      });
    });

    describe('a rotation', () => {
      it('gives the same principal, rights and name; both keys are good for a while', async () => {
        const principal = unique('rotated');
        const old = await make(owner(), { name: 'nightly', scopes: ['runs:read', 'runs:create'], principal });
        const answer = await rotate(owner(), old.id, { graceSeconds: 172_800 });
        expect(answer.status).toBe(201);
        const { id, key, prefix, createdAt, ...same } = answer.body;
        expect(same).toEqual({ name: 'nightly', scopes: ['runs:read', 'runs:create'] });
        expect(id).not.toBe(old.id);
        expect(key).not.toBe(old.key);
        expect([prefix, createdAt]).toEqual([key.slice(0, 12), expect.stringMatching(/Z$/)]);
        for (const either of [old.key, key]) {
          const runId = await by(either).run('conformance-noop');
          expect((await by(either).get(`/v1/runs/${runId}`)).body.owner.principal).toBe(principal);
        }
        const { revokedAt } = await find(owner(), old.id);
        const graceMs = Date.parse(revokedAt) - Date.now();
        expect(graceMs).toBeGreaterThan(172_700_000);
        expect(graceMs).toBeLessThanOrEqual(172_800_000);
      });

      it('without a word about it leaves the old key a day', async () => {
        const old = await make(owner(), { role: 'viewer' });
        expect((await rotate(owner(), old.id)).body.role).toBe('viewer');
        const { revokedAt } = await find(owner(), old.id);
        expect(Math.round((Date.parse(revokedAt) - Date.now()) / HOUR_MS)).toBe(24);
      });

      it('leaves the old key the grace that is advertised, unless it is revoked', async () => {
        const { minGraceSeconds } = (await host().anonymous.get('/.well-known/openwop')).body.auth.rotation;
        const old = await make(owner(), { role: 'viewer' });
        for (const graceSeconds of [0, 1, minGraceSeconds - 1]) {
          expectRefusal(await rotate(owner(), old.id, { graceSeconds }), 400, 'validation_error');
        }
        const { key } = (await rotate(owner(), old.id, { graceSeconds: minGraceSeconds })).body;
        expect((await use(host().url, old.key)).status).toBe(200);
        expect((await revoke(owner(), old.id)).status).toBe(204);
        expectRefusal(await use(host().url, old.key), 401, 'key_revoked');
        expect((await use(host().url, key)).status).toBe(200);
      });

      it('is not for a key that is over or rotated, of which the rest can be cut off', async () => {
        const old = await make(owner(), { role: 'viewer' });
        const next = (await rotate(owner(), old.id)).body;
        expectRefusal(await rotate(owner(), old.id), 409, 'conflict');
        expect((await use(host().url, old.key)).status).toBe(200);
        expect((await revoke(owner(), old.id)).status).toBe(204);
        expectRefusal(await use(host().url, old.key), 401, 'key_revoked');
        await revoke(owner(), next.id);
        expectRefusal(await rotate(owner(), next.id), 409, 'conflict');
      });

      it('of one key by many gives one new key', async () => {
        const old = await make(owner(), { name: unique('contested'), role: 'viewer' });
        const answers = await Promise.all(Array.from({ length: 6 }, () => rotate(owner(), old.id)));
        expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409, 409]);
        expect((await list(owner())).filter(({ name }) => name === old.name)).toHaveLength(2);
      });

      it.each([-1, 1.5, 30 * 24 * 3_600 + 1, '60'])('with a grace of %j is refused', async (graceSeconds) => {
        const { id, key } = await make(owner(), { role: 'viewer' });
        expectRefusal(await rotate(owner(), id, { graceSeconds }), 400, 'validation_error');
        expect((await use(host().url, key)).status).toBe(200);
      });
    });

    it('a retry with its idempotency key makes no second key, and shows everything but the key', async () => {
      const name = unique('once');
      const header = { 'idempotency-key': unique('retry') };
      const first = await owner().post(KEYS, { name, role: 'viewer' }, header);
      const second = await owner().post(KEYS, { name, role: 'viewer' }, header);
      expect(second.status).toBe(201);
      expect(second.headers.get('openwop-idempotent-replay')).toBe('true');
      expect(second.body).toEqual({ ...first.body, key: '[REDACTED]' });
      expect((await list(owner())).filter((item) => item.name === name)).toHaveLength(1);
      expect((await use(host().url, first.body.key)).status).toBe(200);
    });

    it('says when a key was last used, though no request waits for that', async () => {
      const { id, key } = await make(owner(), { role: 'viewer' });
      expect(await find(owner(), id)).not.toHaveProperty('lastUsedAt');
      const before = Date.now();
      await use(host().url, key);
      const { lastUsedAt } = await until(
        () => find(owner(), id),
        (item) => item.lastUsedAt !== undefined,
      );
      expect(Date.parse(lastUsedAt)).toBeGreaterThanOrEqual(before - 1_000);
      // Within the minute nothing more is written.
      await Promise.all(Array.from({ length: 20 }, () => use(host().url, key)));
      expect((await find(owner(), id)).lastUsedAt).toBe(lastUsedAt);
    });

    it('leaves a trace in the audit log of who made, rotated and revoked it, without anything of it', async () => {
      const made = await make(owner(), { role: 'editor' });
      const rotated = (await rotate(owner(), made.id)).body;
      await revoke(owner(), made.id);
      await revoke(owner(), made.id);
      expectRefusal(await rotate(owner(), made.id), 409, 'conflict');
      const { items, text } = await entries(host());
      expect(items.filter(({ target }) => target === made.id).map(({ action, actor }) => ({ action, actor }))).toEqual(
        ['key.revoked', 'key.rotated', 'key.created'].map((action) => ({ action, actor: 'owner-of-alpha' })),
      );
      expect(items.find(({ target }) => target === rotated.id)?.action).toBe('key.created');
      for (const { key, prefix } of [made, rotated]) expect(text).not.toContain(key.slice(prefix.length));
    });

    it('is advertised with the roles and the grace that are enforced', async () => {
      const { body } = await host().anonymous.get('/.well-known/openwop');
      expect(body.authorization).toEqual({
        supported: true,
        failClosed: true,
        roles: ROLES.map((role) => ({ role, scopes: ROLE_SCOPES[role] })),
      });
      expect(body.auth.profiles).toContain('openwop-auth-api-key-rotation');
      expect(body.auth.profiles).not.toContain('openwop-auth-oidc-user-bearer');
      expect(body.auth.rotation).toEqual({ supported: true, minGraceSeconds: 86_400 });
    });
  },
  { apiKeys },
);

onEachStore(
  'the last key that can manage keys',
  (host) => {
    const owner = (): Api => host().firstOwner;
    const self = async (api: Api): Promise<string> => {
      const [item] = (await list(api)).filter(({ name }) => name === 'first start');
      return item.id;
    };

    it('cannot revoke itself, unless another owner stays', async () => {
      const mine = await self(owner());
      await make(owner(), { role: 'reviewer' });
      await make(owner(), { scopes: ROLE_SCOPES.owner });
      await make(owner(), { role: 'owner', workspace: 'north' });
      const gone = await make(owner(), { role: 'owner' });
      await revoke(owner(), gone.id);
      const answer = await revoke(owner(), mine);
      expectRefusal(answer, 409, 'conflict');
      expect((await owner().get(KEYS)).status).toBe(200);

      const second = await make(owner(), { role: 'owner' });
      const heir = new Api(host().url, second.key);
      expect((await revoke(owner(), mine)).status).toBe(204);
      expectRefusal(await owner().get(KEYS), 401, 'key_revoked');
      expectRefusal(await revoke(heir, second.id), 409, 'conflict');
      const rotated = await rotate(heir, second.id);
      expect((await new Api(host().url, rotated.body.key).get(KEYS)).status).toBe(200);
    });
  },
  { apiKeys: [] },
);

describe.each(STORES)('of two last owners, on %s', (kind) => {
  let host: TestHost;
  let neighbour: TestHost;
  beforeAll(async () => {
    host = await startTestHost(kind, inject('postgresUrl'), { apiKeys: [] });
    neighbour = kind === 'postgres' ? await host.another() : host;
  });
  afterAll(async () => {
    if (neighbour !== host) await neighbour.stop();
    await host.stop();
  });

  it('one stays when both revoke themselves at the same moment, on different hosts where there are some', async () => {
    const [first] = await list(host.firstOwner);
    let pair = [await make(host.firstOwner, { role: 'owner' }), await make(host.firstOwner, { role: 'owner' })];
    expect((await revoke(host.firstOwner, first.id)).status).toBe(204);
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all(
        pair.map(({ id, key }, index) => revoke(new Api([host, neighbour][index]!.url, key), id)),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([204, 409]);
      const survivor = pair[answers.findIndex(({ status }) => status === 409)];
      pair = [survivor, await make(new Api(host.url, survivor.key), { role: 'owner' })];
    }
  });
});

it('is made once by hosts that start together on an empty database', async () => {
  const first = await startTestHost('postgres', inject('postgresUrl'));
  const databaseUrl = await freshDatabase(inject('postgresUrl'));
  const started = await Promise.all([1, 2, 3].map(() => first.another({ databaseUrl, apiKeys: [] })));
  try {
    const answers = await Promise.all(started.map(({ firstOwner }) => firstOwner.get(KEYS)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
  } finally {
    await Promise.all([first, ...started].map((host) => host.stop()));
  }
});

describe('a key of another host on the same database', () => {
  let host: TestHost;
  let neighbour: TestHost;
  beforeAll(async () => {
    host = await startTestHost('postgres', inject('postgresUrl'), { apiKeys });
    neighbour = await host.another();
  });
  afterAll(async () => {
    await neighbour.stop();
    await host.stop();
  });

  it('works there at once, and is over there with the next request', async () => {
    const { id, key } = await make(host.as('owner'), { role: 'viewer' });
    expect((await use(neighbour.url, key)).status).toBe(200);
    expect((await revoke(host.as('owner'), id)).status).toBe(204);
    expectRefusal(await use(neighbour.url, key), 401, 'key_revoked');
  });

  it('rotated on two hosts at once gives one new key', async () => {
    const { id } = await make(host.as('owner'), { role: 'viewer' });
    const answers = await Promise.all([host, neighbour, host, neighbour].map((at) => rotate(at.as('owner'), id)));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  });
});

describe.each(STORES)('a key, on %s', (kind) => {
  it('is nowhere but in the answer that made it', async () => {
    const folder = freshFolder();
    const databaseUrl = kind === 'postgres' ? await migratedDatabase(inject('postgresUrl')) : undefined;
    const host = await startHostWith({
      CAPSTAN_DATA: folder.path,
      CAPSTAN_LOG: 'trace',
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
    });
    try {
      const owner = host.as('owner');
      const header = { 'idempotency-key': unique('retry') };
      const made = (await owner.post(KEYS, { name: 'canary', role: 'viewer' }, header)).body;
      await owner.post(KEYS, { name: 'canary', role: 'viewer' }, header);
      const rotated = (await owner.post(`${KEYS}/${made.id}:rotate`, {}, header)).body;
      for (const { key } of [made, rotated]) expect((await use(host.url, key)).status).toBe(200);
      await revoke(owner, made.id);
      expectRefusal(await use(host.url, made.key), 401, 'key_revoked');
      await until(
        () => find(owner, rotated.id),
        (item) => item.lastUsedAt !== undefined,
      );
      await host.stop();
      const kept = await everythingAtRest(folder.path, databaseUrl);
      expect(kept.includes(made.id)).toBe(true);
      for (const { key, prefix } of [made, rotated]) {
        expect(kept.includes(prefix)).toBe(true);
        for (const text of [kept, host.output()]) expect(text.includes(key.slice(prefix.length))).toBe(false);
      }
      expect(host.output()).toContain('"route":"/v1/host/capstan/keys"');
    } finally {
      await host.stop();
      folder.remove();
    }
  });
});

/** What the audit log of alpha has to say about keys, newest first. */
async function entries(host: TestHost): Promise<{ items: Body[]; text: string }> {
  const { body, text } = await host.as('owner').get('/v1/host/capstan/audit?limit=200&actor=owner-of-alpha');
  return { items: body.items, text };
}
