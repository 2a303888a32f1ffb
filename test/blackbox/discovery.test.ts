import { describe, expect, inject, it } from 'vitest';
import type { Answer } from '../support/api.ts';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS, startTestHost } from '../support/host.ts';
import { operationsOf } from '../support/operations.ts';
import { onOneStore } from '../support/stores.ts';

/** core.md 1: what the host says of itself, and that it is true. */

type Document = Answer['body'];

const DISCOVERY = '/.well-known/openwop';
const UNIVERSAL_KINDS = ['clarification.request', 'schema.request', 'schema.response', 'error'];

/** Keys of the families that the protocol closes. */
const CLOSED_FAMILIES: Record<string, readonly string[]> = {
  limits: [
    'clarificationRounds',
    'schemaRounds',
    'envelopesPerTurn',
    'maxNodeExecutions',
    'maxRunDurationMs',
    'maxLoopIterations',
    'maxBudgetTokens',
    'maxBudgetCostUsd',
    'maxRequestBodyBytes',
  ],
  implementation: ['name', 'version', 'vendor'],
  discovery: ['authScoped'],
  secrets: ['supported', 'scopes', 'resolution'],
  production: ['supported', 'backpressure', 'retention', 'debugBundle'],
  subWorkflow: ['inputMapping'],
  conformance: ['mockAgent', 'certificationBundleUrl'],
};

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
const isTextList = (value: unknown): boolean => Array.isArray(value) && value.every((item) => typeof item === 'string');
const isCount = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0;

/** core.md 1.6: membership is derived from the document, never declared in it. */
const PROFILES: Record<string, (c: Document) => boolean> = {
  'openwop-core': (c) =>
    typeof c.protocolVersion === 'string' &&
    c.protocolVersion.startsWith('1.') &&
    isTextList(c.supportedEnvelopes) &&
    typeof c.schemaVersions === 'object' &&
    c.schemaVersions !== null &&
    typeof c.limits === 'object' &&
    c.limits !== null &&
    [c.limits.clarificationRounds, c.limits.schemaRounds, c.limits.envelopesPerTurn].every(isCount),
  'openwop-interrupts': (c) => isCore(c) && c.supportedEnvelopes.includes('clarification.request'),
  'openwop-stream-sse': (c) =>
    isCore(c) && (c.supportedTransports == null || c.supportedTransports.includes?.('rest') === true),
  'openwop-stream-poll': (c) =>
    isCore(c) && (c.supportedTransports == null || c.supportedTransports.includes?.('rest') === true),
  'openwop-secrets': (c) => isCore(c) && c.secrets?.supported === true && c.secrets.scopes?.includes('user') === true,
  'openwop-provider-policy': (c) => isCore(c) && c.aiProviders?.policies?.modes?.includes('optional') === true,
  'openwop-replay-fork': (c) =>
    isCore(c) && c.replay?.supported === true && isTextList(c.replay.modes) && c.replay.modes.length > 0,
  'openwop-fixtures': (c) =>
    isCore(c) && Array.isArray(c.fixtures) && c.fixtures.length > 0 && c.fixtures.every(isText),
  'openwop-experimental': (c) =>
    Object.values<Document>(c).some((family) => typeof family === 'object' && family?.tier === 'experimental'),
};
const isCore = (c: Document): boolean => PROFILES['openwop-core']!(c);

const deriveProfiles = (c: Document): string[] =>
  Object.keys(PROFILES)
    .filter((name) => PROFILES[name]!(c))
    .sort();

/** core.md 1.7. */
const isCoreStandard = (c: Document): boolean =>
  isCore(c) &&
  PROFILES['openwop-interrupts']!(c) &&
  (PROFILES['openwop-stream-sse']!(c) || PROFILES['openwop-stream-poll']!(c));

/** Every `$ref` of a document, wherever it stands. */
function referencesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) =>
    key === '$ref' && typeof item === 'string' ? [item] : referencesIn(item),
  );
}

function resolve(root: Document, reference: string): unknown {
  return reference
    .replace(/^#\//, '')
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((value: Document, step) => value?.[step], root);
}

onOneStore('discovery', (host) => {
  const read = async (): Promise<Document> => (await host().anonymous.get(DISCOVERY)).body;

  it('is open to callers without a credential, and to callers with one that is not valid', async () => {
    const answers = await Promise.all([
      host().anonymous.get(DISCOVERY),
      host().anonymous.get(DISCOVERY, { authorization: 'Bearer nobody-knows-this-key' }),
      host().as('owner').get(DISCOVERY),
    ]);
    for (const { status, headers, text } of answers) {
      expect(status).toBe(200);
      expect(headers.get('content-type')).toMatch(/^application\/json\b/);
      expect(text).toBe(answers[0]!.text);
    }
  });

  it('has the four required root fields', async () => {
    const document = await read();
    expect(document.protocolVersion).toMatch(/^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$/);
    expect(isTextList(document.supportedEnvelopes)).toBe(true);
    expect(document.schemaVersions).toBeTypeOf('object');
    expect(document.limits).toBeTypeOf('object');
  });

  it('names the version it speaks among the versions it serves', async () => {
    const { protocolVersion, protocolVersions } = await read();
    expect(protocolVersion).toBe('1.0');
    expect(protocolVersions).toContain(protocolVersion);
  });

  it('supports the four universal envelopes and says the schema version of each', async () => {
    const { supportedEnvelopes, schemaVersions } = await read();
    expect(supportedEnvelopes).toEqual(expect.arrayContaining(UNIVERSAL_KINDS));
    for (const kind of supportedEnvelopes) expect(isCount(schemaVersions[kind]), kind).toBe(true);
  });

  it('advertises limits of the right types', async () => {
    const { limits } = await read();
    for (const name of ['clarificationRounds', 'schemaRounds', 'envelopesPerTurn'])
      expect(isCount(limits[name])).toBe(true);
    expect(limits.maxNodeExecutions).toBe(10_000);
    expect(limits.maxRunDurationMs).toBe(30 * 24 * 60 * 60 * 1_000);
    expect(limits.maxLoopIterations).toBe(100);
    expect(limits.maxRequestBodyBytes).toBeGreaterThanOrEqual(1);
  });

  it('puts nothing into closed families that the protocol does not know', async () => {
    const document = await read();
    for (const [family, keys] of Object.entries(CLOSED_FAMILIES)) {
      const unknown = Object.keys(document[family] ?? {}).filter((key) => !keys.includes(key));
      expect(unknown, family).toEqual([]);
    }
  });

  it('has its families at the root and no wrapper around them', async () => {
    const document = await read();
    expect(document).not.toHaveProperty('capabilities');
    expect(document).not.toHaveProperty('profiles');
    expect(document).toMatchObject({ runs: { pauseResume: { supported: true } }, subWorkflow: { inputMapping: true } });
  });

  it('types the persisted axes as the protocol does: the engine version is an integer here', async () => {
    const { engineVersion, eventLogSchemaVersion } = await read();
    expect(isCount(engineVersion)).toBe(true);
    expect(eventLogSchemaVersion).toBe(2);
  });

  it('offers the REST transport', async () => {
    const { supportedTransports } = await read();
    expect(supportedTransports).toContain('rest');
    for (const name of supportedTransports) expect(['rest', 'mcp', 'a2a', 'grpc']).toContain(name);
  });

  it('advertises every drain policy that pause takes, and idempotency for at least a day', async () => {
    const { runs, idempotency } = await read();
    expect([...runs.pauseResume.drainPolicies].sort()).toEqual(['drain-current-node', 'immediate']);
    expect(idempotency.layer1RetentionSeconds).toBeGreaterThanOrEqual(24 * 60 * 60);
    expect(idempotency.crossRegion ?? 'single-region').toBe('single-region');
  });

  it('says how to recognise test keys and which mock providers they may use', async () => {
    const { testing } = await read();
    expect(testing.testKeyPrefix).toBe('hk_test_');
    expect(testing.mockProviders).toContain('stream-text');
    expect(new Set(testing.mockProviders).size).toBe(testing.mockProviders.length);
    expect(testing.forceEngineVersionRange.min).toBeLessThanOrEqual(testing.forceEngineVersionRange.max);
  });

  it('says nothing about tenants, principals or keys', async () => {
    const { text } = await host().anonymous.get(DISCOVERY);
    for (const { key, principal, tenant } of Object.values(KEYS)) {
      expect(text).not.toContain(key);
      expect(text).not.toContain(principal);
      expect(text).not.toContain(`"${tenant}"`);
    }
  });

  describe('derived profiles', () => {
    it('are the ones that what is served amounts to', async () => {
      expect(deriveProfiles(await read())).toEqual([
        'openwop-core',
        'openwop-fixtures',
        'openwop-interrupts',
        'openwop-replay-fork',
        'openwop-stream-poll',
        'openwop-stream-sse',
      ]);
    });

    it('come out the same however often they are derived', async () => {
      const document = await read();
      expect(deriveProfiles(await read())).toEqual(deriveProfiles(document));
      expect(deriveProfiles(document)).not.toContain('openwop-core-standard');
    });

    it('amount to openwop-core-standard', async () => {
      expect(isCoreStandard(await read())).toBe(true);
    });

    it('would not, without clarifications, without a transport or with another major', async () => {
      const document = await read();
      expect(isCoreStandard({ ...document, supportedEnvelopes: [] })).toBe(false);
      expect(isCoreStandard({ ...document, supportedTransports: [] })).toBe(false);
      expect(isCoreStandard({ ...document, protocolVersion: '2.0' })).toBe(false);
      expect(isCoreStandard({ ...document, limits: { ...document.limits, schemaRounds: -1 } })).toBe(false);
      expect(isCoreStandard({ ...document, supportedTransports: null })).toBe(true);
    });
  });

  describe('caching', () => {
    it('is allowed, publicly', async () => {
      const { headers } = await host().anonymous.get(DISCOVERY);
      expect(headers.get('cache-control')).toMatch(/\bpublic\b.*\bmax-age=\d+/);
    });

    it('works with validators that stay the same while nothing changes', async () => {
      const [first, second] = [await host().anonymous.get(DISCOVERY), await host().anonymous.get(DISCOVERY)];
      for (const name of ['etag', 'capabilities-etag']) {
        expect(first.headers.get(name)).toMatch(/^(W\/)?"[^"]+"$/);
        expect(second.headers.get(name)).toBe(first.headers.get(name));
      }
    });

    it('gives 304 without a body to who has the document', async () => {
      const etag = (await host().anonymous.get(DISCOVERY)).headers.get('etag')!;
      for (const condition of [etag, `"other", ${etag}`, `W/${etag}`]) {
        const again = await host().anonymous.get(DISCOVERY, { 'if-none-match': condition });
        expect({ status: again.status, text: again.text }, condition).toEqual({ status: 304, text: '' });
        expect(again.headers.get('etag')).toBe(etag);
        expect(again.headers.get('cache-control')).toBeTruthy();
      }
    });

    it('gives the document to who has another one', async () => {
      const answer = await host().anonymous.get(DISCOVERY, { 'if-none-match': '"something-else"' });
      expect(answer.status).toBe(200);
      expect(answer.body.protocolVersion).toBe('1.0');
    });
  });

  it('survives a burst of fifty requests', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => host().anonymous.get(DISCOVERY)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  });

  it('says without a key that the host is alive and ready', async () => {
    for (const path of ['/healthz', '/readyz']) {
      const answer = await host().anonymous.get(path);
      expect({ status: answer.status, isJson: answer.body !== undefined }).toEqual({ status: 200, isJson: true });
    }
  });

  it('counts without a key, and names no tenant, workflow or run in doing so', async () => {
    const runId = await host().as('editor').run('conformance-noop');
    await host().as('editor').ended(runId);
    const { status, text, headers } = await host().anonymous.get('/metrics');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toMatch(/^text\/plain/);
    expect(text).toMatch(/^# TYPE \S+ (counter|gauge|histogram)$/m);
    for (const word of ['alpha', 'editor', 'conformance-', runId]) expect(text).not.toContain(word);
  });

  describe('roots without a version', () => {
    const requests = [
      ['GET', '/runs'],
      ['POST', '/runs'],
      ['GET', '/workflows/conformance-noop'],
      ['GET', '/openapi.json'],
      ['GET', '/v2/runs'],
      ['DELETE', '/webhooks/wh-1'],
      ['GET', '/.well-known/wop'],
      ['GET', '/v1runs'],
    ] as const;

    it.each(requests)('%s %s is refused with 400, with a key and without', async (method, path) => {
      for (const api of [host().anonymous, host().as('owner')]) {
        expectRefusal(await api.request(method, path, method === 'POST' ? {} : undefined), 400, 'validation_error');
      }
    });
  });

  it('marks answers under /v1/ with the protocol version', async () => {
    const answers = await Promise.all([
      host().as('viewer').get('/v1/workflows/conformance-noop'),
      host().as('viewer').get('/v1/runs/absent'),
      host().anonymous.get('/v1/openapi.json'),
    ]);
    expect(answers.map(({ headers }) => headers.get('openwop-version'))).toEqual(['1.0', '1.0', '1.0']);
  });

  describe('fixtures', () => {
    it('are unique and not empty', async () => {
      const { fixtures } = await read();
      expect(fixtures.every(isText)).toBe(true);
      expect(new Set(fixtures).size).toBe(fixtures.length);
      expect(fixtures).toEqual(
        expect.arrayContaining(['conformance-noop', 'conformance-failure', 'conformance-idempotent']),
      );
    });

    it('can each be read by name', async () => {
      const { fixtures } = await read();
      for (const id of fixtures) {
        const { status, body } = await host().as('viewer').get(`/v1/workflows/${id}`);
        expect(status, id).toBe(200);
        expect(body).toMatchObject({ id, version: '1.0', triggers: [{ type: 'manual' }] });
      }
    });

    it('can each be started by name', async () => {
      const { fixtures } = await read();
      const inputs = { payload: {}, nonce: 'n' };
      for (const id of fixtures) {
        const { status, body, text } = await host().as('editor').post('/v1/runs', { workflowId: id, inputs });
        expect(status, `${id}: ${text}`).toBe(201);
        await host().as('editor').post(`/v1/runs/${body.runId}/cancel`);
      }
    });
  });
});

onOneStore('the API documents', (host) => {
  it('are open and of the versions that readers expect', async () => {
    const openapi = await host().anonymous.get('/v1/openapi.json');
    const asyncapi = await host().anonymous.get('/v1/asyncapi.json');
    expect([openapi.status, asyncapi.status]).toEqual([200, 200]);
    expect(openapi.body.openapi).toMatch(/^3\.[1-9]/);
    expect(asyncapi.body.asyncapi).toMatch(/^3\./);
  });

  it('give every operation an id of its own', async () => {
    const ids = (await operationsOf(host().anonymous)).map(({ operationId }) => operationId);
    expect(ids.every(isText)).toBe(true);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('declare exactly the parameters that stand in each path', async () => {
    for (const { path, raw } of await operationsOf(host().anonymous)) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();
      const declared = (raw.parameters ?? []).filter((parameter: Document) => parameter.in === 'path');
      expect(declared.map(({ name }: Document) => name).sort(), path).toEqual(inPath);
      expect(
        declared.every(({ required }: Document) => required === true),
        path,
      ).toBe(true);
    }
  });

  it('name no parameter of an operation twice', async () => {
    for (const { path, method, raw } of await operationsOf(host().anonymous)) {
      const names = (raw.parameters ?? []).map((parameter: Document) => `${parameter.in} ${parameter.name}`);
      expect(new Set(names).size, `${method} ${path}`).toBe(names.length);
    }
  });

  it('resolve all of their references', async () => {
    for (const path of ['/v1/openapi.json', '/v1/asyncapi.json']) {
      const { body } = await host().anonymous.get(path);
      const references = [...new Set(referencesIn(body))];
      expect(references.length).toBeGreaterThan(0);
      expect(references.filter((reference) => resolve(body, reference) === undefined)).toEqual([]);
    }
  });

  it('say of every operation what comes back, and that what is not public takes a bearer', async () => {
    const { body } = await host().anonymous.get('/v1/openapi.json');
    expect(body.components.securitySchemes).toMatchObject({ bearer: { type: 'http', scheme: 'bearer' } });
    for (const { raw, isPublic, scope, operationId } of await operationsOf(host().anonymous)) {
      const statuses = Object.keys(raw.responses);
      expect(
        statuses.some((status) => /^[23]/.test(status)),
        operationId,
      ).toBe(true);
      if (isPublic) continue;
      expect(isText(scope), operationId).toBe(true);
      expect(statuses, operationId).toEqual(expect.arrayContaining(['401', '403']));
    }
  });

  it('let paths resolve to one /v1, not two', async () => {
    const { body } = await host().anonymous.get('/v1/openapi.json');
    for (const { url } of body.servers ?? []) expect(new URL(url, host().url).pathname).toBe('/');
  });

  it('describe the core operations under the names and with the scopes of the protocol', async () => {
    const found = (await operationsOf(host().anonymous)).map(({ operationId, method, path, scope }) => [
      operationId,
      `${method} ${path}`,
      scope,
    ]);
    expect(found).toEqual(
      expect.arrayContaining([
        ['getWorkflow', 'GET /v1/workflows/{workflowId}', 'manifest:read'],
        ['createRun', 'POST /v1/runs', 'runs:create'],
        ['getRun', 'GET /v1/runs/{runId}', 'runs:read'],
        ['streamRunEvents', 'GET /v1/runs/{runId}/events', 'runs:read'],
        ['pollRunEvents', 'GET /v1/runs/{runId}/events/poll', 'runs:read'],
        ['cancelRun', 'POST /v1/runs/{runId}/cancel', 'runs:cancel'],
        ['bulkCancelRuns', 'POST /v1/runs:bulk-cancel', 'runs:cancel'],
        ['pauseRun', 'POST /v1/runs/{runId}:pause', 'runs:cancel'],
        ['resumeRun', 'POST /v1/runs/{runId}:resume', 'runs:cancel'],
        ['getArtifact', 'GET /v1/runs/{runId}/artifacts/{artifactId}', 'artifacts:read'],
      ]),
    );
  });

  it('list every event type that a run can show as a message', async () => {
    const { body } = await host().anonymous.get('/v1/asyncapi.json');
    const messages = Object.keys(body.components.messages);
    expect(messages).toEqual(
      expect.arrayContaining(['run.started', 'run.completed', 'node.failed', 'output.chunk', 'state.snapshot']),
    );
    expect(Object.keys(body.channels.runEvents.messages).sort()).toEqual(messages.sort());
  });
});

describe('discovery under other settings', () => {
  const documentUnder = async (overrides: Parameters<typeof startTestHost>[2]): Promise<Answer> => {
    const host = await startTestHost('sqlite', inject('postgresUrl'), overrides);
    try {
      return await host.anonymous.get(DISCOVERY);
    } finally {
      await host.stop();
    }
  };

  it('repeats the families under a wrapper only where the operator asks for it', async () => {
    const { body } = await documentUnder({ discoveryMirror: true });
    const { capabilities, ...root } = body;
    expect(root).toMatchObject(capabilities);
    expect(Object.keys(capabilities)).toEqual(expect.arrayContaining(['limits', 'fixtures', 'supportedEnvelopes']));
  });

  it('changes its validators when what clients negotiated by has changed, and only then', async () => {
    // Hosts of one installation: they share the key that signs audit checkpoints, which is part of the document.
    const first = await startTestHost('postgres', inject('postgresUrl'));
    const others = [await first.another(), await first.another({ maxNodeExecutions: 77 })];
    const hosts = [first, ...others];
    const [one, same, other] = await Promise.all(hosts.map((host) => host.anonymous.get(DISCOVERY)));
    for (const host of hosts.reverse()) await host.stop();
    for (const name of ['etag', 'capabilities-etag']) {
      expect(same!.headers.get(name)).toBe(one!.headers.get(name));
      expect(other!.headers.get(name)).not.toBe(one!.headers.get(name));
    }
    expect(other!.body.limits.maxNodeExecutions).toBe(77);
  });

  it('has secrets where the operator has stored some, or where a suite asks for one', async () => {
    const credential = { name: 'billing', secret: 'Wanderfalke-7f3a9', origins: [], tenants: ['alpha'] };
    const SECRETS = { supported: true, scopes: ['tenant'], resolution: 'host-managed' };
    expect((await documentUnder({ conformance: false })).body).not.toHaveProperty('secrets');
    const { body, text } = await documentUnder({ conformance: false, credentials: [credential] });
    expect(body.secrets).toEqual(SECRETS);
    expect(text).not.toMatch(/billing|Wanderfalke/);
    expect((await documentUnder({})).body.secrets).toEqual(SECRETS);
  });

  it('keeps fixtures, mock providers and conformance nodes out of a host without the conformance switch', async () => {
    const host = await startTestHost('sqlite', inject('postgresUrl'), { conformance: false });
    try {
      const { body } = await host.anonymous.get(DISCOVERY);
      expect(body.fixtures ?? []).toEqual([]);
      expect(body.testing?.mockProviders ?? []).toEqual([]);
      expectRefusal(await host.as('editor').get('/v1/workflows/conformance-noop'), 404, 'not_found');
      expectRefusal(await host.as('editor').post('/v1/runs', { workflowId: 'conformance-noop' }), 404, 'not_found');
    } finally {
      await host.stop();
    }
  });

  it('stays exempt from the rate limit, or is refused in the exact shape', async () => {
    const host = await startTestHost('sqlite', inject('postgresUrl'), { requestsPerSecond: 1 });
    try {
      const answers = await Promise.all(Array.from({ length: 50 }, () => host.anonymous.get(DISCOVERY)));
      for (const answer of answers.filter(({ status }) => status !== 200)) {
        expectRefusal(answer, 429, 'rate_limited');
        const seconds = Number(answer.headers.get('retry-after'));
        expect(Number.isInteger(seconds)).toBe(true);
        expect(Math.abs(answer.body.details.retryAfterMs - seconds * 1_000)).toBeLessThanOrEqual(1_500);
        expect(['tenant', 'route', 'global', 'key']).toContain(answer.body.details.scope);
      }
      expect(answers.some(({ status }) => status === 200)).toBe(true);
    } finally {
      await host.stop();
    }
  });
});
