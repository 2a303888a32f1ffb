import { describe, expect, inject, it } from 'vitest';
import { SCOPES } from '../../src/protocol/trust/scopes.ts';
import { type Answer, Api } from '../support/api.ts';
import { edge, node, register, unique, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS, startTestHost } from '../support/host.ts';
import { keyRecords } from '../support/keys.ts';
import { stillClock } from '../support/manual-clock.ts';
import { fill, type Operation, operationsOf } from '../support/operations.ts';
import { onEachStore, onOneStore } from '../support/stores.ts';

/** core.md 4: who gets in, what they may do, and what they cannot learn. */

const inAlpha = (key: string, rest: object) => ({ key, tenant: 'alpha', principal: key, ...rest });

/** For each scope a key that has nothing else, and one that has everything else. */
const ONLY = Object.fromEntries(SCOPES.map((scope) => [scope, inAlpha(`only-${scope}`, { scopes: [scope] })]));
const ALL_BUT = Object.fromEntries(
  SCOPES.map((scope) => [scope, inAlpha(`all-but-${scope}`, { scopes: SCOPES.filter((other) => other !== scope) })]),
);
const SOUTH = inAlpha('editor-of-alpha-south', { role: 'editor', workspace: 'south' });
const SCOPES_OVER_ROLE = inAlpha('owner-without-scopes', { role: 'owner', scopes: [] });
const NEITHER = inAlpha('neither-role-nor-scopes', {});
/** As a stranger would make one up; all of them share a word to search for. */
const MARKER = 'Kanarienvogel';
const STRANGERS = [
  `sk-${MARKER}0123456789abcdef`,
  `sk-ant-api03-${MARKER}0123456789abcdef`,
  `AIza${MARKER}0123456789abcdefghijk`,
  `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ${MARKER}In0.c2lnbmF0dXJl${MARKER}`,
  `cred_${MARKER}0123456789abcdef`,
  `hk_live_${MARKER}0123456789abcdef`,
  MARKER,
];

const EXPIRED = inAlpha('owner-until-yesterday', { role: 'owner' });
const REVOKED = inAlpha('owner-no-longer', { role: 'owner' });
const hourAgo = Date.now() - 60 * 60 * 1_000;

const apiKeys = keyRecords([
  ...Object.values(ONLY),
  ...Object.values(ALL_BUT),
  SOUTH,
  SCOPES_OVER_ROLE,
  NEITHER,
  EXPIRED,
  REVOKED,
]).map((record) => ({
  ...record,
  ...(record.principal === EXPIRED.principal ? { expiresAt: hourAgo } : {}),
  ...(record.principal === REVOKED.principal ? { revokedAt: hourAgo } : {}),
}));

/** What each role adds to the one before it. */
const ADDED = {
  viewer: 'manifest:read runs:read artifacts:read prompts:read feedback:read goals:read proposals:read',
  editor: `runs:create runs:cancel approvals:respond webhooks:manage audit:read prompts:write feedback:write
    proposals:write goals:write workflows:write schedules:write`,
  reviewer: 'proposals:activate packs:publish',
  owner: 'keys:manage tenant:admin workers:serve',
} as const;
type RoleName = keyof typeof ADDED;
const ROLE_NAMES = Object.keys(ADDED) as RoleName[];
const grantedTo = (role: RoleName): readonly string[] =>
  ROLE_NAMES.slice(0, ROLE_NAMES.indexOf(role) + 1).flatMap((lower) => ADDED[lower].split(/\s+/));

onOneStore(
  'authentication and scopes',
  (host) => {
    const protectedOperations = async (): Promise<Operation[]> =>
      (await operationsOf(host().anonymous)).filter(({ isPublic }) => !isPublic);
    /** Some are for whoever has a credential at all: they say who is calling. */
    const scopedOperations = async (): Promise<Operation[]> =>
      (await protectedOperations()).filter(({ scope }) => scope !== 'any');
    const call = (
      api: Api,
      { method, path, hasBody }: Operation,
      values: Record<string, string> = {},
      headers: Record<string, string> = {},
    ): Promise<Answer> =>
      // A stream that is asked to go on from nowhere is refused; otherwise it would never end.
      api.request(method, fill(path, values), hasBody ? {} : undefined, { 'last-event-id': 'nowhere', ...headers });

    it('covers operations worth covering', async () => {
      expect((await protectedOperations()).length).toBeGreaterThanOrEqual(15);
    });

    it('refuses every operation to a caller without a credential', async () => {
      for (const operation of await protectedOperations()) {
        expectRefusal(await call(host().anonymous, operation), 401, 'unauthenticated');
      }
    });

    it('refuses every operation to a made-up bearer with 401, not 403', async () => {
      const stranger = new Api(host().url, 'nobody-ever-issued-this-key');
      for (const operation of await protectedOperations()) {
        expectRefusal(await call(stranger, operation), 401, 'unauthenticated');
      }
    });

    it.each([
      ['an empty header', ''],
      ['a scheme without a key', 'Bearer'],
      ['a scheme and blanks', 'Bearer    '],
      ['another scheme', `Basic ${Buffer.from(`user:${KEYS.owner.key}`).toString('base64')}`],
      ['a key under another scheme', `Token ${KEYS.owner.key}`],
      ['a key without a scheme', KEYS.owner.key],
      ['a key with something after it', `Bearer ${KEYS.owner.key} more`],
      ['a key with a character too many', `Bearer ${KEYS.owner.key}x`],
      ['a key with a character too few', `Bearer ${KEYS.owner.key.slice(0, -1)}`],
      ['a key in the wrong case', `Bearer ${KEYS.owner.key.toUpperCase()}`],
      ['two keys', `Bearer ${KEYS.owner.key}, Bearer ${KEYS.owner.key}`],
      ['an overlong key', `Bearer ${'k'.repeat(5_000)}`],
    ])('refuses %s', async (_what, authorization) => {
      for (const operation of await protectedOperations()) {
        expectRefusal(await call(host().anonymous, operation, {}, { authorization }), 401, 'unauthenticated');
      }
    });

    it('takes no credential from the query, a cookie or another header', async () => {
      const { key } = KEYS.owner;
      const answers = await Promise.all([
        host().anonymous.get(`/v1/workflows/conformance-noop?access_token=${key}&api_key=${key}`),
        host().anonymous.get('/v1/workflows/conformance-noop', { cookie: `authorization=Bearer ${key}` }),
        host().anonymous.get('/v1/workflows/conformance-noop', { 'x-api-key': key }),
      ]);
      for (const answer of answers) expectRefusal(answer, 401, 'unauthenticated');
    });

    it('takes the scheme in any case', async () => {
      const answer = await host().anonymous.get('/v1/workflows/conformance-noop', {
        authorization: `bearer ${KEYS.viewer.key}`,
      });
      expect(answer.status).toBe(200);
    });

    it.each([
      [EXPIRED, 'key_expired'],
      [REVOKED, 'key_revoked'],
    ])('tells the bearer of $key that it is over, by the code', async ({ key }, code) => {
      const answer = await new Api(host().url, key).get('/v1/workflows/conformance-noop');
      expectRefusal(answer, 401, code);
      expect(answer.text).not.toContain(key);
    });

    const THERE = { file: 'error.schema.json', name: 'vendor.openwop.workflow-chain-sample', part: '1.0.0.json' };

    it('leaves public operations open', async () => {
      const open = (await operationsOf(host().anonymous)).filter(({ isPublic }) => isPublic);
      expect(open.map(({ path }) => path)).toEqual(
        expect.arrayContaining(['/.well-known/openwop', '/v1/openapi.json']),
      );
      for (const operation of open) {
        const answer = await call(host().anonymous, operation, THERE);
        // A token in the path is a credential of its own, and this one stands for nothing. No identity provider is set up.
        const isAbsent = operation.path.includes('{token}') || /\/sign-in(?:\/return)?$/.test(operation.path);
        expect(answer.status, operation.path).toBe(isAbsent ? 404 : operation.method === 'DELETE' ? 204 : 200);
      }
    });

    it('asks who is there before it says whether a route, a run or a workflow exists', async () => {
      const runId = await host().as('editor').run('conformance-noop');
      const answers = await Promise.all(
        [
          `/v1/runs/${runId}`,
          '/v1/runs/absent',
          '/v1/workflows/conformance-noop',
          '/v1/workflows/absent',
          '/v1/nowhere',
        ].map((path) => host().anonymous.get(path)),
      );
      for (const answer of answers) {
        expectRefusal(answer, 401, 'unauthenticated');
        expect(answer.text).toBe(answers[0]!.text);
      }
      expectRefusal(await host().anonymous.request('PATCH', `/v1/runs/${runId}`), 401, 'unauthenticated');
      expectRefusal(await host().as('viewer').get('/v1/nowhere'), 404, 'not_found');
    });

    it('asks who is there before it reads a body', async () => {
      const json = { 'content-type': 'application/json' };
      expectRefusal(await host().anonymous.request('POST', '/v1/runs', '{', json), 401, 'unauthenticated');
      expectRefusal(await host().as('nothing').request('POST', '/v1/runs', '{', json), 403, 'forbidden');
    });

    it.each(STRANGERS)('repeats nothing of a credential that looks like %s', async (key) => {
      const stranger = new Api(host().url, key);
      for (const operation of await protectedOperations()) {
        const answer = await call(stranger, operation);
        expectRefusal(answer, 401, 'unauthenticated');
        expect(answer.text + JSON.stringify([...answer.headers])).not.toContain(MARKER);
      }
    });

    it('refuses every operation to a key without scopes, and names the scope that it takes', async () => {
      for (const operation of await scopedOperations()) {
        const answer = await call(host().as('nothing'), operation);
        expectRefusal(answer, 403, 'forbidden');
        expect(answer.body.details, operation.operationId).toEqual({ scopeRequired: operation.scope });
      }
    });

    it('asks for exactly the scope that it names: no other scope implies it', async () => {
      for (const operation of await scopedOperations()) {
        const allBut = await call(new Api(host().url, ALL_BUT[operation.scope!]!.key), operation);
        expectRefusal(allBut, 403, 'forbidden');
        expect(allBut.body.details.scopeRequired).toBe(operation.scope);
        const only = await call(new Api(host().url, ONLY[operation.scope!]!.key), operation);
        expect([401, 403], `${operation.operationId}: ${only.text}`).not.toContain(only.status);
      }
    });

    it('lets scopes win over a role, and gives a key with neither nothing', async () => {
      for (const { key } of [SCOPES_OVER_ROLE, NEITHER]) {
        expectRefusal(await new Api(host().url, key).get('/v1/workflows/conformance-noop'), 403, 'forbidden');
      }
    });

    it.each(ROLE_NAMES)('gives the role %s what it should have', async (role) => {
      const granted = grantedTo(role);
      for (const operation of await scopedOperations()) {
        const { status, text } = await call(host().as(role), operation);
        expect(status === 403, `${operation.operationId}: ${text}`).toBe(!granted.includes(operation.scope!));
        expect(status).not.toBe(401);
      }
    });
  },
  { apiKeys },
);

/** What every run-scoped operation would do to a run, if it could. */
const RUN_OPERATIONS: readonly (readonly [method: string, suffix: string, body?: object])[] = [
  ['GET', ''],
  ['GET', '/events'],
  ['GET', '/events?streamMode=values'],
  ['GET', '/events?streamMode=nonsense'],
  ['GET', '/events/poll?timeout=1'],
  ['GET', '/events/poll?lastSequence=nonsense'],
  ['GET', '/artifacts/art-0'],
  ['POST', ':pause', { drainPolicy: 'immediate' }],
  ['POST', ':resume', {}],
  ['POST', '/cancel', { reason: 'not yours' }],
];

onEachStore(
  'what belongs to others',
  (host) => {
    const south = (): Api => new Api(host().url, SOUTH.key);
    const makesArtifact = workflow(
      [
        node('make', 'core.identity', { inputs: { text: { type: 'static', value: 'x' } }, artifactType: 'note' }),
        node('wait', 'core.delay', { config: { ms: 60_000 } }),
      ],
      [edge('make', 'wait')],
    );

    /** A run that is still going and has an artifact. */
    async function liveRun(api: Api): Promise<string> {
      const runId = await api.run(await register(api, { ...makesArtifact, id: unique('wf') }));
      await api.until(runId, (snapshot) => JSON.stringify(snapshot).includes('"wait"'));
      return runId;
    }

    async function expectInvisible(runId: string, owner: Api, other: Api): Promise<void> {
      const before = await owner.events(runId);
      expect((await owner.get(`/v1/runs/${runId}/artifacts/art-0`)).status).toBe(200);
      for (const [method, suffix, body] of RUN_OPERATIONS) {
        const foreign = await other.request(method, `/v1/runs/${runId}${suffix}`, body);
        const absent = await other.request(method, `/v1/runs/run-nobodyhasthisone${suffix}`, body);
        expectRefusal(foreign, 404, 'not_found');
        expect({ status: absent.status, text: absent.text }, suffix).toEqual({ status: 404, text: foreign.text });
      }
      const bulk = await other.post('/v1/runs:bulk-cancel', { runIds: [runId, 'run-nobodyhasthisone'] });
      expect(bulk.status).toBe(200);
      expect(bulk.body.results).toMatchObject([
        { runId, ok: false, error: { code: 'not_found' } },
        { runId: 'run-nobodyhasthisone', ok: false, error: { code: 'not_found' } },
      ]);
      expect(bulk.body.results[0].error).toEqual(bulk.body.results[1].error);
      const listed = (await other.get('/v1/host/capstan/runs?limit=200')).body.items;
      expect(listed.map((item: { runId: string }) => item.runId)).not.toContain(runId);
      expect(await owner.events(runId)).toEqual(before);
      expect((await owner.get(`/v1/runs/${runId}`)).body.status).toBe('running');
      await owner.post(`/v1/runs/${runId}/cancel`);
    }

    it('a run of another tenant is absent in every operation and cannot be changed', async () => {
      await expectInvisible(await liveRun(host().as('editor')), host().as('editor'), host().as('other'));
    });

    it('a run of another workspace is absent in every operation and cannot be changed', async () => {
      await expectInvisible(await liveRun(host().as('workspace')), host().as('workspace'), south());
    });

    it('a run of the tenant at large is absent for a key of one workspace', async () => {
      await expectInvisible(await liveRun(host().as('editor')), host().as('editor'), host().as('workspace'));
    });

    it('a run made with a test key is absent for a live key', async () => {
      await expectInvisible(await liveRun(host().as('test')), host().as('test'), host().as('owner'));
    });

    it('a run made with a live key is absent for a test key', async () => {
      await expectInvisible(await liveRun(host().as('editor')), host().as('editor'), host().as('test'));
    });

    it('a run of a workspace can be seen by a key of the whole tenant', async () => {
      const runId = await host().as('workspace').run('conformance-noop');
      expect((await host().as('viewer').get(`/v1/runs/${runId}`)).status).toBe(200);
    });

    it('the children of a run belong to the workspace of their parent', async () => {
      const api = host().as('workspace');
      const parent = await api.ended(await api.run('conformance-subworkflow-parent'));
      const [child] = parent.childRuns;
      expect((await api.get(`/v1/runs/${child.runId}`)).body.owner).toEqual(parent.owner);
      expectRefusal(await south().get(`/v1/runs/${child.runId}`), 404, 'not_found');
    });

    async function expectForeignWorkflow(owner: Api, other: Api): Promise<void> {
      const definition = workflow([node('a')]);
      await register(owner, definition);
      const { id } = definition;
      const absent = unique('wf');
      for (const place of ['/v1/workflows', WORKFLOWS]) {
        const foreign = await other.get(`${place}/${id}`);
        expectRefusal(foreign, 404, 'not_found');
        expect((await other.get(`${place}/${absent}`)).text).toBe(foreign.text);
      }
      expectRefusal(await other.post('/v1/runs', { workflowId: id }), 404, 'not_found');
      expectRefusal(await other.request('DELETE', `${WORKFLOWS}/${id}`), 404, 'not_found');
      expectRefusal(
        await other.request('PUT', `${WORKFLOWS}/${id}`, { ...definition, name: 'mine' }),
        404,
        'not_found',
      );
      const { items } = (await other.get(`${WORKFLOWS}?limit=200`)).body;
      expect(items.map((item: { id: string }) => item.id)).not.toContain(id);
      expect((await owner.get(`/v1/workflows/${id}`)).body).toEqual(definition);
      expect((await owner.ended(await owner.run(id))).status).toBe('completed');
    }

    it('a workflow of another tenant is absent in every operation and cannot be changed', async () => {
      await expectForeignWorkflow(host().as('editor'), host().as('other'));
    });

    it('a workflow registered with a live key is absent for a test key, and the other way round', async () => {
      await expectForeignWorkflow(host().as('editor'), host().as('test'));
      await expectForeignWorkflow(host().as('test'), host().as('editor'));
    });

    it('two tenants may use one workflow id for different workflows', async () => {
      const one = workflow([node('a')]);
      const two = { ...one, name: 'Another', nodes: [node('b')] };
      await register(host().as('editor'), one);
      await register(host().as('other'), two);
      expect((await host().as('editor').get(`/v1/workflows/${one.id}`)).body).toEqual(one);
      expect((await host().as('other').get(`/v1/workflows/${one.id}`)).body).toEqual(two);
    });

    it('the workflow that a tenant puts over one of the host changes nothing for others', async () => {
      const mine = { ...workflow([node('mine')]), id: 'conformance-version-fold' };
      const before = (await host().as('other').get('/v1/workflows/conformance-version-fold')).body;
      await register(host().as('editor'), mine);
      expect((await host().as('editor').get('/v1/workflows/conformance-version-fold')).body).toEqual(mine);
      expect((await host().as('other').get('/v1/workflows/conformance-version-fold')).body).toEqual(before);
      expect((await host().as('editor').request('DELETE', `${WORKFLOWS}/conformance-version-fold`)).status).toBe(204);
      expect((await host().as('editor').get('/v1/workflows/conformance-version-fold')).body).toEqual(before);
      expectRefusal(
        await host().as('editor').request('DELETE', `${WORKFLOWS}/conformance-version-fold`),
        404,
        'not_found',
      );
    });

    it('a body that names another tenant is refused and starts nothing', async () => {
      const list = async (): Promise<Answer['body']> => (await host().as('other').get('/v1/host/capstan/runs')).body;
      const before = await list();
      for (const tenantId of ['alpha', 'BETA', '', 'beta ', 'beta#test']) {
        const answer = await host().as('other').post('/v1/runs', { workflowId: 'conformance-noop', tenantId });
        expectRefusal(answer, 403, 'forbidden');
      }
      expect(await list()).toEqual(before);
    });

    it('a body that names its own tenant is taken, with live and with test keys', async () => {
      for (const api of [host().as('editor'), host().as('test')]) {
        const answer = await api.post('/v1/runs', { workflowId: 'conformance-noop', tenantId: 'alpha' });
        expect(answer.status).toBe(201);
      }
    });

    it('a run says whom it belongs to, on the snapshot and on its first event', async () => {
      const expected = {
        editor: { tenant: 'alpha', principal: 'editor-of-alpha' },
        workspace: { tenant: 'alpha', workspace: 'north', principal: 'editor-of-alpha-north' },
        test: { tenant: 'alpha', principal: 'test-editor-of-alpha' },
        other: { tenant: 'beta', principal: 'owner-of-beta' },
      };
      for (const [who, owner] of Object.entries(expected)) {
        const api = host().as(who as keyof typeof expected);
        const snapshot = await api.ended(await api.run('conformance-noop'));
        expect(snapshot.owner).toEqual(owner);
        expect((await api.events(snapshot.runId))[0].payload.owner).toEqual(owner);
      }
    });

    // contract.md 6: "Foreign tenant or workspace: absent everywhere".
    it('a workflow registered in another workspace is absent in every operation and cannot be changed', async () => {
      await expectForeignWorkflow(host().as('workspace'), south());
    });
  },
  { apiKeys },
);

describe('a rate limit', () => {
  it('is decided before scopes, and says when to come back', async () => {
    const host = await startTestHost('sqlite', inject('postgresUrl'), { requestsPerSecond: 1 }, stillClock());
    try {
      const answers = await Promise.all(
        Array.from({ length: 12 }, () => host.as('nothing').get('/v1/workflows/conformance-noop')),
      );
      const limited = answers.filter(({ status }) => status === 429);
      expect(answers.length - limited.length).toBe(2);
      for (const answer of limited) {
        expectRefusal(answer, 429, 'rate_limited');
        const seconds = Number(answer.headers.get('retry-after'));
        expect(seconds).toBeGreaterThanOrEqual(1);
        expect(Number.isInteger(seconds)).toBe(true);
        expect(Math.abs(answer.body.details.retryAfterMs - seconds * 1_000)).toBeLessThanOrEqual(1_500);
        expect(['tenant', 'route', 'global', 'key']).toContain(answer.body.details.scope);
      }
      // Another key has a limit of its own.
      expect((await host.as('viewer').get('/v1/workflows/conformance-noop')).status).toBe(200);
    } finally {
      await host.stop();
    }
  });
});
