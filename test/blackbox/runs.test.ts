import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { edge, fixed, node, register, unique, variable, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { HeldNodes } from '../support/held-nodes.ts';
import { KEYS, startTestHost } from '../support/host.ts';
import { HurriedClock } from '../support/manual-clock.ts';
import { onEachStore, onOneStore, onStoresAtOnce } from '../support/stores.ts';

/** core.md 2.1 to 2.10 and 7: starting, reading, steering and finding runs. */

const RUNS = '/v1/runs';
const LIST = '/v1/host/capstan/runs';
const LIVE_STATUSES = ['pending', 'running', 'waiting-approval', 'waiting-input', 'waiting-external'];
const noop = (rest: object = {}): object => ({ workflowId: 'conformance-noop', ...rest });
const typesOf = (events: readonly Answer['body'][]): string[] => events.map(({ type }) => type);
const ofType = (events: readonly Answer['body'][], type: string): Answer['body'][] =>
  events.filter((event) => event.type === type);

onOneStore('starting a run', (host) => {
  const api = (): Api => host().as('editor');

  it('answers 201 with an id, a live status and absolute URLs on the origin of the request', async () => {
    const { status, body } = await api().post(RUNS, noop());
    expect(status).toBe(201);
    expect(Object.keys(body).sort()).toEqual(['eventsUrl', 'runId', 'status', 'statusUrl']);
    expect(body.runId).toMatch(/^run-[a-z0-9]{16,}$/);
    expect(LIVE_STATUSES).toContain(body.status);
    expect(body.statusUrl).toBe(`${host().url}/v1/runs/${body.runId}`);
    expect(body.eventsUrl).toBe(`${host().url}/v1/runs/${body.runId}/events`);
  });

  it('gives URLs that work', async () => {
    const { body } = await api().post(RUNS, noop());
    const headers = { authorization: `Bearer ${KEYS.editor.key}`, accept: 'application/json' };
    const snapshot = await fetch(body.statusUrl, { headers });
    const events = await fetch(body.eventsUrl, { headers });
    expect([snapshot.status, events.status]).toEqual([200, 200]);
    expect(await snapshot.json()).toMatchObject({ runId: body.runId });
    expect(((await events.json()) as Answer['body']).events[0]).toMatchObject({ type: 'run.started' });
  });

  it('makes a run that can be read at once', async () => {
    for (let round = 0; round < 20; round++) {
      const { body } = await api().post(RUNS, noop());
      const { status, body: snapshot } = await api().get(`/v1/runs/${body.runId}`);
      expect(status).toBe(200);
      expect(snapshot).toMatchObject({ runId: body.runId, workflowId: 'conformance-noop' });
    }
  });

  it('accepts a run that is going to fail', async () => {
    const { status, body } = await api().post(RUNS, { workflowId: 'conformance-failure' });
    expect(status).toBe(201);
    expect(LIVE_STATUSES).toContain(body.status);
  });

  it('accepts inputs that the workflow does not declare', async () => {
    const inputs = { nobody: 'declared', any: { of: ['this'] } };
    expect(await api().ended(await api().run('conformance-noop', { inputs }))).toMatchObject({
      status: 'completed',
      inputs,
    });
  });

  it('accepts a callback URL, a scope and trace context', async () => {
    const body = noop({ callbackUrl: 'https://example.com/back', scopeId: 'a scope' });
    const headers = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tracestate: 'a=b' };
    expect((await api().post(RUNS, body, headers)).status).toBe(201);
  });

  it('knows no workflow that is not there, and does not repeat its id', async () => {
    const workflowId = unique('absent');
    const answer = await api().post(RUNS, { workflowId });
    expectRefusal(answer, 404, 'not_found');
    expect(answer.text).not.toContain(workflowId);
    expect(answer.body.message).toContain('GET /v1/host/capstan/workflows');
  });

  it('refuses evaluation runs as a capability that it does not have', async () => {
    const body = { mode: 'eval', evalSuiteRef: 'suite-1', agentId: 'agent-1' };
    expectRefusal(await api().post(RUNS, body), 501, 'capability_not_provided');
  });

  it('refuses a residency that it cannot keep', async () => {
    expect((await api().post(RUNS, noop({ residency: { region: 'eu' } }))).status).toBe(422);
  });

  it('asks for a required input that has no default, and only for that', async () => {
    const definition = workflow([node('a')], [], {
      variables: [
        { name: 'must', type: 'string', required: true },
        { name: 'may', type: 'string' },
        { name: 'has', type: 'string', required: true, defaultValue: 'default' },
      ],
    });
    await register(api(), definition);
    const refused = await api().post(RUNS, { workflowId: definition.id, inputs: { may: 'x' } });
    expectRefusal(refused, 400, 'validation_error');
    expect(JSON.stringify(refused.body.details)).toContain('must');
    const snapshot = await api().ended(await api().run(definition.id, { inputs: { must: 'given' } }));
    expect(snapshot.variables).toEqual({ must: 'given', has: 'default' });
  });

  it('takes at most a thousand inputs, each of which may have many members', async () => {
    const members = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1]));
    const refused = await api().post(RUNS, noop({ inputs: members(1_001) }));
    expectRefusal(refused, 400, 'validation_error');
    expect(refused.body.details).toMatchObject({ field: 'inputs', limit: 1_000 });
    expect((await api().post(RUNS, noop({ inputs: { ...members(999), stock: members(5_000) } }))).status).toBe(201);
  });

  it('takes variables from defaults, then from inputs', async () => {
    const definition = workflow([node('a')], [], {
      variables: [
        { name: 'a', type: 'object', defaultValue: { x: [1] } },
        { name: 'b', type: 'number', defaultValue: 1 },
        { name: 'c', type: 'array' },
      ],
    });
    await register(api(), definition);
    const snapshot = await api().ended(await api().run(definition.id, { inputs: { b: 2, extra: true } }));
    expect(snapshot.variables).toEqual({ a: { x: [1] }, b: 2, extra: true });
  });

  it('keeps the number zero, false, null and the empty string as inputs', async () => {
    const inputs = { zero: 0, no: false, nothing: null, empty: '', list: [], object: {} };
    const snapshot = await api().ended(await api().run('conformance-noop', { inputs }));
    expect(snapshot.variables).toEqual(inputs);
  });
});

describe('the origin in URLs', () => {
  it('is the one that the operator sets', async () => {
    const host = await startTestHost('sqlite', inject('postgresUrl'), { publicUrl: 'https://runs.example.com' });
    try {
      const { body } = await host.as('editor').post(RUNS, noop());
      expect(body.statusUrl).toBe(`https://runs.example.com/v1/runs/${body.runId}`);
      expect(body.eventsUrl).toBe(`https://runs.example.com/v1/runs/${body.runId}/events`);
    } finally {
      await host.stop();
    }
  });
});

onOneStore('run options', (host) => {
  const api = (): Api => host().as('editor');
  const withConfigurable = (configurable: object, by: Api = api()): Promise<Answer> =>
    by.post(RUNS, noop({ configurable }));

  it.each([
    { recursionLimit: 0 },
    { recursionLimit: -1 },
    { recursionLimit: 1.5 },
    { recursionLimit: '3' },
    { recursionLimit: null },
    { recursionLimit: true },
    { runTimeoutMs: 0 },
    { runTimeoutMs: -5 },
    { runTimeoutMs: 0.5 },
    { runTimeoutMs: '1000' },
    { maxLoopIterations: 0 },
    { maxLoopIterations: 2.5 },
    { maxLoopIterations: 'many' },
    { temperature: -0.1 },
    { temperature: 2.01 },
    { temperature: 'hot' },
    { maxTokens: 0 },
    { maxTokens: 1.5 },
    { maxTokens: '9' },
    { model: 7 },
    { model: null },
    { promptOverrides: [] },
    { promptOverrides: 'x' },
    { promptOverrides: { greeting: 1 } },
    { ai: 'openai' },
    { ai: { provider: 1 } },
    { ai: { provider: 'nobody-configured-this' } },
    { ai: { model: {} } },
    { ai: { credentialRef: 5 } },
    { escalationThreshold: 1.1 },
    { reasoningVerbosity: 'loud' },
  ])('are refused at creation when they do not fit: %j', async (configurable) => {
    expectRefusal(await withConfigurable(configurable), 400, 'validation_error');
  });

  it.each([
    { mockProvider: 'stream-text' },
    { mockProvider: {} },
    { mockProvider: { id: '' } },
    { mockProvider: { id: 'x'.repeat(129) } },
    { mockProvider: { id: 'stream-text', more: 1 } },
    { mockProvider: { id: 'stream-text', config: [] } },
  ])('are refused when a mock provider is malformed: %j', async (configurable) => {
    expectRefusal(await withConfigurable(configurable, host().as('test')), 400, 'validation_error');
  });

  it.each([
    { recursionLimit: 1 },
    { recursionLimit: 1_000_000_000 },
    { runTimeoutMs: 60_000 },
    { runTimeoutMs: 10 ** 15 },
    { maxLoopIterations: 10 ** 12 },
    { temperature: 0 },
    { temperature: 2 },
    { maxTokens: 1 },
    { model: 'some-model' },
    { promptOverrides: { greeting: 'Hello' } },
    { ai: { model: 'some-model' } },
    { ai: { credentialRef: 'cred_0123456789' } },
    { escalationThreshold: 0.7, reasoningVerbosity: 'off' },
    { distillation: { tokenBudget: 100 }, budget: { maxTokens: 5 } },
    { 'acme.anything': { goes: [1, null] }, unknown: 'too' },
    {},
  ])('are taken when they fit, and come back on the snapshot: %j', async (configurable) => {
    const { status, body, text } = await withConfigurable(configurable);
    expect(status, text).toBe(201);
    const snapshot = await api().ended(body.runId);
    expect(snapshot.status).toBe('completed');
    expect(snapshot.configurable ?? {}).toEqual(configurable);
  });

  it('keep up to a hundred tags of up to 256 characters, in order', async () => {
    const tags = Array.from({ length: 100 }, (_, index) => `${index}:`.padEnd(256, '☂'));
    const snapshot = await api().ended(await api().run('conformance-noop', { tags }));
    expect(snapshot.tags).toEqual(tags);
  });

  it.each([
    ['more than a hundred', Array.from({ length: 101 }, (_, index) => `t${index}`)],
    ['one that is too long', ['x'.repeat(257)]],
    ['one that is empty', ['']],
    ['one that is no string', ['a', 1]],
    ['one that is null', [null]],
    ['no array', { a: 'b' }],
  ])('refuse tags: %s', async (_what, tags) => {
    expectRefusal(await api().post(RUNS, noop({ tags })), 400, 'validation_error');
  });

  it('never refuse a tag for its format, and show it on the first event', async () => {
    const tags = ['UPPER', 'with space', 'a:b/c?d=e&f', '日本', '-', '"quoted"', 'UPPER'];
    const runId = await api().run('conformance-noop', { tags });
    expect((await api().ended(runId)).tags).toEqual(tags);
    expect((await api().events(runId))[0].payload.tags).toEqual(tags);
  });

  it('keep metadata as it was sent', async () => {
    const metadata = { a: { b: { c: { d: [1, { e: null }] } } }, 'key with space': 'x'.repeat(8_000) };
    expect((await api().ended(await api().run('conformance-noop', { metadata }))).metadata).toEqual(metadata);
  });

  it('take 50 KB of metadata and refuse more', async () => {
    const filled = (bytes: number): object => ({ a: 'x'.repeat(bytes - '{"a":""}'.length) });
    expect((await api().post(RUNS, noop({ metadata: filled(50 * 1_024) }))).status).toBe(201);
    expectRefusal(await api().post(RUNS, noop({ metadata: filled(60 * 1_024) })), 400, 'validation_error');
  });

  it('cannot be reached from expressions: tags and metadata are not for nodes', async () => {
    for (const name of ['tags', 'metadata', 'configurable', 'run']) {
      const reads = node('a', 'core.identity', { inputs: { x: { type: 'expression', expression: `${name}.x` } } });
      expectRefusal(await api().post('/v1/host/capstan/workflows', workflow([reads])), 422, 'validation_error');
    }
  });

  it('have to fit the schema of the workflow', async () => {
    const start = (configurable: object): Promise<Answer> =>
      api().post(RUNS, { workflowId: 'conformance-configurable-schema', configurable });
    for (const bad of [{ recursionLimit: 0 }, { tags: 'x' }, { tags: [1] }, { unknown: 1 }, { model: 'm' }]) {
      expectRefusal(await start(bad), 400, 'validation_error');
    }
    for (const good of [{}, { recursionLimit: 5 }, { tags: ['a'] }]) expect((await start(good)).status).toBe(201);
    const { body } = await api().get('/v1/workflows/conformance-configurable-schema');
    expect(body.configurableSchema.properties).toHaveProperty('recursionLimit');
  });

  it('are checked against a schema also when they are left out', async () => {
    const configurableSchema = {
      type: 'object',
      required: ['acme.mode'],
      properties: { 'acme.mode': { enum: ['a'] } },
    };
    const definition = workflow([node('a')], [], { configurableSchema });
    await register(api(), definition);
    expectRefusal(await api().post(RUNS, { workflowId: definition.id }), 400, 'validation_error');
    const answer = await api().post(RUNS, { workflowId: definition.id, configurable: { 'acme.mode': 'a' } });
    expect(answer.status).toBe(201);
  });
});

onOneStore('caps', (host) => {
  const api = (): Api => host().as('editor');

  it('stop a run before the node that would be one too many', async () => {
    const configurable = { recursionLimit: 3 };
    const { status, body } = await api().post(RUNS, { workflowId: 'conformance-cap-breach', configurable });
    expect(status).toBe(201);
    const snapshot = await api().ended(body.runId);
    expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'recursion_limit_exceeded' } });
    const events = await api().events(body.runId);
    const breaches = ofType(events, 'cap.breached');
    expect(breaches).toHaveLength(1);
    expect(breaches[0].payload).toMatchObject({ kind: 'node-executions', limit: 3, nodeId: 'n4' });
    expect(breaches[0].payload.observed).toBeGreaterThan(3);
    expect(ofType(events, 'node.started').map(({ nodeId }) => nodeId)).toEqual(['n1', 'n2', 'n3']);
    expect(events.at(-1).type).toBe('run.failed');
    expect(events.at(-1).causationId).toBe(breaches[0].eventId);
    expect(breaches[0].sequence).toBeLessThan(events.at(-1).sequence);
  });

  it.each([
    [5, 'failed'],
    [6, 'completed'],
    [7, 'completed'],
  ])('count exactly: six nodes under a limit of %d are %s', async (recursionLimit, status) => {
    const configurable = { recursionLimit };
    expect((await api().ended(await api().run('conformance-cap-breach', { configurable }))).status).toBe(status);
  });

  it('stop nothing without an override', async () => {
    const runId = await api().run('conformance-cap-breach');
    expect((await api().ended(runId)).status).toBe('completed');
    expect(typesOf(await api().events(runId))).not.toContain('cap.breached');
  });

  it('count retries as executions', async () => {
    const flaky = node('f', 'core.fail', { settings: { retry: { maxRetries: 10, delayMs: 1 } } });
    const id = await register(api(), workflow([flaky]));
    const runId = await api().run(id, { configurable: { recursionLimit: 3 } });
    expect((await api().ended(runId)).error.code).toBe('recursion_limit_exceeded');
    expect(ofType(await api().events(runId), 'node.started')).toHaveLength(3);
  });

  it('stop a run that takes too long, and cut what is in flight', async () => {
    const runId = await api().run('conformance-run-duration-breach', { configurable: { runTimeoutMs: 1_000 } });
    expect(await api().ended(runId)).toMatchObject({ status: 'failed', error: { code: 'run_timeout' } });
    const events = await api().events(runId);
    const [breach, ...more] = ofType(events, 'cap.breached');
    expect(more).toEqual([]);
    expect(breach.payload).toMatchObject({ kind: 'run-duration', limit: 1_000 });
    expect(breach.payload.observed).toBeGreaterThan(1_000);
    expect(typesOf(events).slice(-3)).toEqual(['cap.breached', 'node.cancelled', 'run.failed']);
  });
});

describe('the ceilings of the host', () => {
  it('bound what callers ask for, without refusing it', async () => {
    const clock = new HurriedClock();
    const host = await startTestHost('sqlite', undefined, { maxNodeExecutions: 4, maxRunDurationMs: 5_000 }, clock);
    try {
      const api = host.as('editor');
      for (const configurable of [{ recursionLimit: 100 }, {}]) {
        const runId = await api.run('conformance-cap-breach', { configurable });
        expect((await api.ended(runId)).error.code).toBe('recursion_limit_exceeded');
        expect(ofType(await api.events(runId), 'cap.breached')[0].payload).toMatchObject({ limit: 4, nodeId: 'n5' });
      }
      const runId = await api.run('conformance-cancellable', { configurable: { runTimeoutMs: 10 ** 9 } });
      expect((await clock.hurry(api.ended(runId))).error.code).toBe('run_timeout');
      expect(ofType(await api.events(runId), 'cap.breached')[0].payload).toMatchObject({ limit: 5_000 });
    } finally {
      await host.stop();
    }
  });
});

onOneStore('a snapshot', (host) => {
  const api = (): Api => host().as('editor');

  it('has the required fields and says what the run is', async () => {
    const runId = await api().run('conformance-noop', { inputs: { a: 1 }, tags: ['t'], metadata: { m: 1 } });
    const snapshot = await api().ended(runId);
    expect(snapshot).toMatchObject({
      runId,
      workflowId: 'conformance-noop',
      status: 'completed',
      owner: { tenant: 'alpha', principal: 'editor-of-alpha' },
      nodeStates: { noop: { status: 'completed' } },
      variables: { a: 1 },
      engineVersion: expect.stringMatching(/^\d+$/),
      eventLogSchemaVersion: 2,
      tags: ['t'],
      metadata: { m: 1 },
    });
    const { engineVersion } = (await host().anonymous.get('/.well-known/openwop')).body;
    expect(snapshot.engineVersion).toBe(String(engineVersion));
    expect(snapshot).not.toHaveProperty('error');
    expect(snapshot).not.toHaveProperty('channels');
    expect(snapshot).not.toHaveProperty('parentRunId');
  });

  it('has times in order', async () => {
    const snapshot = await api().ended(await api().run('conformance-multi-node'));
    const times = [snapshot.createdAt, snapshot.startedAt, snapshot.completedAt].map((text) => Date.parse(text));
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    for (const text of [snapshot.startedAt, snapshot.completedAt]) expect(new Date(text).toISOString()).toBe(text);
  });

  it('has a closed error on a failed run', async () => {
    const { error } = await api().ended(await api().run('conformance-failure'));
    expect(error).toEqual({ code: 'conformance_test_failure', message: expect.stringMatching(/./) });
  });

  it('shows running while a node runs, and no end', async () => {
    const runId = await api().run('conformance-cancellable');
    const snapshot = await api().until(runId, ({ status }) => status === 'running');
    expect(snapshot).not.toHaveProperty('completedAt');
    await api().post(`/v1/runs/${runId}/cancel`);
  });

  it('never changes once the run has ended', async () => {
    const runId = await api().run('conformance-failure');
    const snapshot = await api().ended(runId);
    for (const verb of ['/cancel', ':pause', ':resume']) await api().post(`/v1/runs/${runId}${verb}`);
    expect((await api().get(`/v1/runs/${runId}`)).body).toEqual(snapshot);
  });

  it('of an unknown run is 404', async () => {
    expectRefusal(await api().get('/v1/runs/run-unknown'), 404, 'not_found');
  });
});

onEachStore('cancelling', (host) => {
  const api = (): Api => host().as('editor');
  const cancel = (runId: string, body?: unknown): Promise<Answer> => api().post(`/v1/runs/${runId}/cancel`, body);

  it('ends a running run, and says who and why', async () => {
    const runId = await api().run('conformance-cancellable');
    const answer = await cancel(runId, { reason: 'no longer needed' });
    expect(answer.status).toBe(200);
    expect(Object.keys(answer.body).sort()).toEqual(['runId', 'status']);
    expect(answer.body.runId).toBe(runId);
    expect(['cancelling', 'cancelled']).toContain(answer.body.status);
    expect((await api().ended(runId)).status).toBe('cancelled');
    const events = await api().events(runId);
    expect(events.at(-1)).toMatchObject({
      type: 'run.cancelled',
      payload: { reason: 'no longer needed', cancelledBy: 'editor-of-alpha' },
    });
  });

  it('tells what was in flight, before the end', async () => {
    const runId = await api().run('conformance-cancellable');
    await api().until(runId, (snapshot) => JSON.stringify(snapshot).includes('"wait"'));
    await cancel(runId);
    const types = typesOf(await api().events(runId));
    expect(types.slice(-2)).toEqual(['node.cancelled', 'run.cancelled']);
    expect(types).not.toContain('run.cancelling');
    expect(types).not.toContain('node.completed');
  });

  it.each([
    ['no body', undefined],
    ['an empty object', {}],
    ['a reason', { reason: 'x' }],
  ])('takes %s', async (_what, body) => {
    const runId = await api().run('conformance-cancellable');
    expect((await cancel(runId, body)).status).toBe(200);
    expect((await api().ended(runId)).status).toBe('cancelled');
  });

  it('refuses a reason that is not text or too long', async () => {
    const runId = await api().run('conformance-cancellable');
    for (const reason of [1, null, ['x'], 'x'.repeat(100_000)]) {
      expectRefusal(await cancel(runId, { reason }), 400, 'validation_error');
    }
    expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('running');
    await cancel(runId);
  });

  it.each([
    ['conformance-noop', 'completed'],
    ['conformance-failure', 'failed'],
  ])('leaves a run of %s as it ended and answers with its status', async (workflowId, status) => {
    const runId = await api().run(workflowId);
    await api().ended(runId);
    const before = await api().events(runId);
    const answer = await cancel(runId);
    expect({ status: answer.status, body: answer.body }).toEqual({ status: 200, body: { runId, status } });
    expect(await api().events(runId)).toEqual(before);
  });

  it('twice is cancelling once', async () => {
    const runId = await api().run('conformance-cancellable');
    await cancel(runId, { reason: 'first' });
    await api().ended(runId);
    const before = await api().events(runId);
    const again = await cancel(runId, { reason: 'second' });
    expect({ status: again.status, body: again.body }).toEqual({ status: 200, body: { runId, status: 'cancelled' } });
    expect(await api().events(runId)).toEqual(before);
  });

  it('by thirty callers at once ends the run once', async () => {
    const runId = await api().run('conformance-cancellable');
    const answers = await Promise.all(Array.from({ length: 30 }, () => cancel(runId)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(ofType(await api().events(runId), 'run.cancelled')).toHaveLength(1);
  });

  it('at any moment of a short run leaves one end', async () => {
    const rounds = Array.from({ length: 40 }, async (_, index) => {
      const runId = await api().run(index % 2 === 0 ? 'conformance-multi-node' : 'conformance-channel-ttl');
      const answer = await cancel(runId);
      expect(answer.status, answer.text).toBe(200);
      const snapshot = await api().ended(runId);
      const events = await api().events(runId);
      const ends = events.filter(({ type }) => /^run\.(completed|failed|cancelled)$/.test(type));
      expect(ends).toEqual([events.at(-1)]);
      expect(`run.${snapshot.status}`).toBe(ends[0].type);
    });
    await Promise.all(rounds);
  });

  it('ends a paused run at once', async () => {
    const runId = await api().run('conformance-cancellable');
    await api().post(`/v1/runs/${runId}:pause`, { drainPolicy: 'immediate' });
    expect((await cancel(runId)).body).toEqual({ runId, status: 'cancelled' });
    expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('cancelled');
  });

  it('of an unknown run is 404', async () => {
    expectRefusal(await cancel('run-unknown', { reason: 'x' }), 404, 'not_found');
  });

  it('goes down to the children, within five seconds', async () => {
    const calls = node('call', 'core.subWorkflow', { config: { workflowId: 'conformance-cancellable' } });
    const parentId = await api().run(await register(api(), workflow([calls])));
    const { childRuns } = await api().until(parentId, (snapshot) => 'childRuns' in snapshot);
    const [{ runId: childId }] = childRuns;
    const startedAt = Date.now();
    await cancel(parentId, { reason: 'all of it' });
    expect((await api().ended(childId)).status).toBe('cancelled');
    expect(Date.now() - startedAt).toBeLessThan(5_000);
    expect((await api().events(childId)).at(-1)).toMatchObject({
      type: 'run.cancelled',
      payload: { reason: 'parent-cancelled', parentRunId: parentId },
    });
  });

  it('goes down three levels', async () => {
    const leaf = node('call', 'core.subWorkflow', { config: { workflowId: 'conformance-cancellable' } });
    const middle = await register(api(), workflow([leaf]));
    const top = await register(api(), workflow([node('call', 'core.subWorkflow', { config: { workflowId: middle } })]));
    const topId = await api().run(top);
    const middleId = (await api().until(topId, (it) => 'childRuns' in it)).childRuns[0].runId;
    const leafId = (await api().until(middleId, (it) => 'childRuns' in it)).childRuns[0].runId;
    await cancel(topId);
    expect((await api().ended(leafId)).status).toBe('cancelled');
    expect((await api().ended(middleId)).status).toBe('cancelled');
  });

  it('leaves a child alone that was launched to go on', async () => {
    const config = { workflowId: 'conformance-cancellable', propagateCancellation: false };
    const parentId = await api().run(await register(api(), workflow([node('call', 'core.subWorkflow', { config })])));
    const [{ runId: childId }] = (await api().until(parentId, (it) => 'childRuns' in it)).childRuns;
    await cancel(parentId);
    expect((await api().ended(parentId)).status).toBe('cancelled');
    expect((await api().get(`/v1/runs/${childId}`)).body.status).toBe('running');
    await cancel(childId);
  });
});

onEachStore('cancelling many', (host) => {
  const api = (): Api => host().as('editor');
  const bulk = (body: unknown): Promise<Answer> => api().post('/v1/runs:bulk-cancel', body);

  it('answers for each, in the order asked, whatever came of it', async () => {
    const [live, paused, done, failed, cancelled] = await Promise.all([
      api().run('conformance-cancellable'),
      api().run('conformance-cancellable'),
      api().run('conformance-noop'),
      api().run('conformance-failure'),
      api().run('conformance-cancellable'),
    ]);
    await api().post(`/v1/runs/${paused}:pause`, { drainPolicy: 'immediate' });
    await api().post(`/v1/runs/${cancelled}/cancel`);
    await Promise.all([done, failed, cancelled].map((runId) => api().ended(runId!)));
    const runIds = [cancelled, 'run-unknown', live, done, paused, failed];
    const { status, body } = await bulk({ runIds, reason: 'all' });
    expect(status).toBe(200);
    const refused = (runId: string | undefined, code: string) => ({
      runId,
      ok: false,
      error: { code, message: expect.stringMatching(/./) },
    });
    const taken = (runId: string | undefined) => ({
      runId,
      ok: true,
      status: expect.stringMatching(/^cancell(ing|ed)$/),
    });
    expect(body).toEqual({
      results: [
        { runId: cancelled, ok: true, status: 'cancelled' },
        refused('run-unknown', 'not_found'),
        taken(live),
        refused(done, 'run_terminal'),
        taken(paused),
        refused(failed, 'run_terminal'),
      ],
    });
    for (const runId of [live, paused]) expect((await api().ended(runId!)).status).toBe('cancelled');
  });

  it('is 200 even when nothing could be cancelled', async () => {
    const { status, body } = await bulk({ runIds: ['run-a', 'run-b'] });
    expect(status).toBe(200);
    expect(body.results.map(({ ok }: { ok: boolean }) => ok)).toEqual([false, false]);
  });

  it('answers for an id as often as it was asked about', async () => {
    const runId = await api().run('conformance-cancellable');
    const { body } = await bulk({ runIds: [runId, runId] });
    expect(body.results.map((result: { ok: boolean }) => result.ok)).toEqual([true, true]);
    expect(ofType(await api().events(runId), 'run.cancelled')).toHaveLength(1);
  });

  it.each([
    {},
    { runIds: [] },
    { runIds: 'run-a' },
    { runIds: null },
    { runIds: { 0: 'run-a' } },
    { runIds: [1] },
    { runIds: ['run-a', null] },
    { runIds: [['run-a']] },
    { runIds: ['run-a'], reason: 5 },
  ])('refuses %j', async (body) => {
    expectRefusal(await bulk(body), 400, 'validation_error');
  });

  it('takes a hundred ids and names the cap when there are more', async () => {
    const ids = Array.from({ length: 101 }, (_, index) => `run-${index}`);
    expect((await bulk({ runIds: ids.slice(0, 100) })).body.results).toHaveLength(100);
    const refused = await bulk({ runIds: ids });
    expectRefusal(refused, 400, 'validation_error');
    expect(refused.body.details.maxRunIds).toBe(100);
  });

  it('cancels nothing when it refuses', async () => {
    const runId = await api().run('conformance-cancellable');
    await bulk({ runIds: [runId, 7] });
    await bulk({ runIds: [runId, ...Array.from({ length: 100 }, () => 'run-x')] });
    expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('running');
    await bulk({ runIds: [runId] });
  });
});

onStoresAtOnce('pausing and resuming', (host) => {
  const api = (): Api => host().as('editor');
  const pause = (runId: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> =>
    api().post(`/v1/runs/${runId}:pause`, body, headers);
  const resume = (runId: string, body?: unknown): Promise<Answer> => api().post(`/v1/runs/${runId}:resume`, body);
  const waiting = (ms: number): Promise<string> => api().run('conformance-cancellable', { inputs: { delayMs: ms } });
  let held: HeldNodes;
  beforeAll(async () => {
    held = await HeldNodes.open();
  });
  afterAll(() => held?.close());
  /** A run whose only node is at work until it is let go. */
  const atWork = async (): Promise<{ runId: string; letGo(): void }> => {
    const name = unique('held');
    const runId = await api().run(await register(api(), workflow([held.node('wait', name)])));
    await held.atWork(name);
    return { runId, letGo: () => held.letGo(name) };
  };
  const inNode = (runId: string): Promise<Answer['body']> =>
    api().until(runId, (snapshot) => JSON.stringify(snapshot).includes('"wait"'));
  const paused = (runId: string): Promise<Answer['body']> => api().until(runId, ({ status }) => status === 'paused');

  it('every advertised policy is taken with 202', async () => {
    const { drainPolicies } = (await host().anonymous.get('/.well-known/openwop')).body.runs.pauseResume;
    for (const drainPolicy of drainPolicies) {
      const { runId, letGo } = await atWork();
      const { status, body } = await pause(runId, { drainPolicy, reason: 'lunch' });
      letGo();
      expect(status).toBe(202);
      expect(body).toEqual({ runId, status: 'paused', pausedAt: expect.stringMatching(/^\d{4}-.*Z$/) });
      await paused(runId);
      const [event] = ofType(await api().events(runId), 'run.paused');
      expect(event.payload).toMatchObject({ drainPolicy, reason: 'lunch' });
      const resumed = await resume(runId, { reason: 'back' });
      expect(resumed.status).toBe(202);
      expect(resumed.body).toEqual({ runId, status: 'running', resumedAt: expect.stringMatching(/^\d{4}-.*Z$/) });
      expect((await api().ended(runId)).status).toBe('completed');
    }
  });

  it('a child that ends meanwhile ends no node of a paused run', async () => {
    const name = unique('held');
    const child = await register(api(), workflow([held.node('wait', name)]));
    const call = node('call', 'core.subWorkflow', { config: { workflowId: child, waitForCompletion: true } });
    const runId = await api().run(await register(api(), workflow([call])));
    await held.atWork(name);
    const { childRuns } = await api().until(runId, (snapshot) => 'childRuns' in snapshot);
    expect((await pause(runId, { drainPolicy: 'immediate' })).status).toBe(202);
    held.letGo(name);
    await api().ended(childRuns[0].runId);
    // The host has had the time for another run, too.
    await api().ended(await api().run('conformance-noop'));
    expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('paused');
    await resume(runId);
    expect((await api().ended(runId)).status).toBe('completed');
    const types = typesOf(await api().events(runId));
    expect(types.indexOf('node.completed')).toBeGreaterThan(types.indexOf('run.resumed'));
  });

  it('draining is the default: the node ends, then the run is paused, and completes only after it is resumed', async () => {
    const { runId, letGo } = await atWork();
    expect((await pause(runId)).status).toBe(202);
    letGo();
    await paused(runId);
    const types = typesOf(await api().events(runId));
    expect(types.indexOf('node.completed')).toBeGreaterThan(0);
    expect(types.indexOf('run.paused')).toBeGreaterThan(types.indexOf('node.completed'));
    expect(types).not.toContain('run.completed');
    await resume(runId);
    expect((await api().ended(runId)).status).toBe('completed');
    const after = typesOf(await api().events(runId));
    expect(after.slice(-2)).toEqual(['run.resumed', 'run.completed']);
    expect(after.filter((type) => type === 'node.completed')).toHaveLength(1);
  });

  it('draining waits for all branches in flight and starts nothing new', async () => {
    const [short, long] = [unique('held'), unique('held')];
    const nodes = [held.node('short', short), held.node('wait', long), node('after')];
    const runId = await api().run(await register(api(), workflow(nodes, [edge('short', 'after')])));
    for (const name of [short, long]) await held.atWork(name);
    await pause(runId);
    held.letGo(short);
    await api().until(runId, ({ nodeStates }) => nodeStates.short.status === 'completed');
    held.letGo(long);
    await paused(runId);
    const events = await api().events(runId);
    expect(ofType(events, 'node.completed').map(({ nodeId }) => nodeId)).toEqual(['short', 'wait']);
    expect(ofType(events, 'node.started').map(({ nodeId }) => nodeId)).not.toContain('after');
    await resume(runId);
    expect((await api().ended(runId)).nodeStates.after.status).toBe('completed');
  });

  it('draining waits for a child run', async () => {
    const name = unique('held');
    const child = await register(api(), workflow([held.node('inner', name)]));
    const calls = node('wait', 'core.subWorkflow', { config: { workflowId: child } });
    const runId = await api().run(await register(api(), workflow([calls])));
    await held.atWork(name);
    await pause(runId);
    held.letGo(name);
    const snapshot = await paused(runId);
    expect(snapshot.childRuns[0].status).toBe('completed');
    expect(typesOf(await api().events(runId))).not.toContain('run.completed');
    await resume(runId);
    expect((await api().ended(runId)).status).toBe('completed');
  });

  it('immediate cuts the attempt without an end, and resuming begins a fresh one', async () => {
    const { runId, letGo } = await atWork();
    await pause(runId, { drainPolicy: 'immediate' });
    const snapshot = (await api().get(`/v1/runs/${runId}`)).body;
    expect(snapshot.status).toBe('paused');
    const events = await api().events(runId);
    expect(events.at(-1)).toMatchObject({ type: 'run.paused', payload: { drainPolicy: 'immediate' } });
    for (const type of ['node.completed', 'node.failed', 'node.cancelled']) expect(ofType(events, type)).toEqual([]);
    letGo();
    await resume(runId);
    expect((await api().ended(runId)).status).toBe('completed');
    const attempts = ofType(await api().events(runId), 'node.started').map(({ payload }) => payload.attempt);
    expect(attempts).toEqual([0, 1]);
  });

  it('a paused run stays paused, though its delay has long passed', async () => {
    const runId = await waiting(1_000);
    await inNode(runId);
    await pause(runId, { drainPolicy: 'immediate' });
    // Another run with a longer delay, started later, comes to its end: time enough.
    await api().ended(await waiting(1_100));
    expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('paused');
    await api().post(`/v1/runs/${runId}/cancel`);
  });

  it('a paused run is found by its status', async () => {
    const tag = unique('tag');
    const runId = await api().run('conformance-cancellable', { tags: [tag] });
    await pause(runId, { drainPolicy: 'immediate' });
    const { items } = (await api().get(`${LIST}?status=paused&tag=${tag}`)).body;
    expect(items.map((item: { runId: string }) => item.runId)).toEqual([runId]);
    await api().post(`/v1/runs/${runId}/cancel`);
  });

  it('pausing a paused run is a conflict that says since when', async () => {
    const runId = await waiting(30_000);
    const first = await pause(runId, { drainPolicy: 'immediate' });
    const again = await pause(runId);
    expectRefusal(again, 409, 'run_state_conflict');
    expect(again.body.details).toMatchObject({ runStatus: 'paused', pausedAt: first.body.pausedAt });
    await api().post(`/v1/runs/${runId}/cancel`);
  });

  it('pausing a run that is draining is a conflict too', async () => {
    const runId = await waiting(30_000);
    await inNode(runId);
    const first = await pause(runId);
    const again = await pause(runId, { drainPolicy: 'immediate' });
    expectRefusal(again, 409, 'run_state_conflict');
    expect(again.body.details).toMatchObject({ runStatus: 'paused', pausedAt: first.body.pausedAt });
    await api().post(`/v1/runs/${runId}/cancel`);
  });

  it('pausing again with the key of the first pause gives its answer', async () => {
    const runId = await waiting(30_000);
    const key = { 'idempotency-key': unique('key') };
    const first = await pause(runId, { drainPolicy: 'immediate' }, key);
    const again = await pause(runId, { drainPolicy: 'immediate' }, key);
    expect({ status: again.status, body: again.body }).toEqual({ status: 202, body: first.body });
    expect(again.headers.get('openwop-idempotent-replay')).toBe('true');
    await api().post(`/v1/runs/${runId}/cancel`);
  });

  it.each(['conformance-noop', 'conformance-failure'])(
    'pausing or resuming a finished %s is a conflict',
    async (id) => {
      const runId = await api().run(id);
      const { status } = await api().ended(runId);
      for (const answer of [await pause(runId), await resume(runId)]) {
        expectRefusal(answer, 409, 'run_terminal');
        expect(answer.body.details.runStatus).toBe(status);
      }
    },
  );

  it('pausing or resuming a cancelled run is a conflict', async () => {
    const runId = await waiting(30_000);
    await api().post(`/v1/runs/${runId}/cancel`);
    for (const answer of [await pause(runId), await resume(runId)]) {
      expectRefusal(answer, 409, 'run_terminal');
      expect(answer.body.details.runStatus).toBe('cancelled');
    }
  });

  it('resuming a run that is not paused is a conflict', async () => {
    const runId = await waiting(30_000);
    const answer = await resume(runId);
    expectRefusal(answer, 409, 'run_state_conflict');
    expect(answer.body.details.runStatus).toBe('running');
    await api().post(`/v1/runs/${runId}/cancel`);
  });

  it('resuming a run that is still draining calls the pause off', async () => {
    const { runId, letGo } = await atWork();
    await pause(runId);
    expect((await resume(runId)).status).toBe(202);
    letGo();
    expect((await api().ended(runId)).status).toBe('completed');
    expect(typesOf(await api().events(runId))).not.toContain('run.paused');
  });

  it('an unknown run is 404', async () => {
    for (const answer of [await pause('run-unknown'), await resume('run-unknown')]) {
      expectRefusal(answer, 404, 'not_found');
    }
  });

  it('an unknown policy is 400 and pauses nothing', async () => {
    const runId = await waiting(30_000);
    for (const drainPolicy of ['now', '', null, 1]) {
      expectRefusal(await pause(runId, { drainPolicy }), 400, 'validation_error');
    }
    expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('running');
    await api().post(`/v1/runs/${runId}/cancel`);
  });

  it('a run can be paused and resumed many times', async () => {
    const runId = await waiting(1_500);
    for (let round = 0; round < 5; round++) {
      expect((await pause(runId, { drainPolicy: 'immediate' })).status).toBe(202);
      expect((await resume(runId)).status).toBe(202);
    }
    expect((await api().ended(runId)).status).toBe('completed');
    const types = typesOf(await api().events(runId));
    expect(types.filter((type) => type === 'run.paused')).toHaveLength(5);
    expect(types.filter((type) => type === 'run.resumed')).toHaveLength(5);
  });

  it('of ten pauses at once one is taken', async () => {
    const runId = await waiting(30_000);
    const answers = await Promise.all(Array.from({ length: 10 }, () => pause(runId, { drainPolicy: 'immediate' })));
    expect(answers.map(({ status }) => status).sort()).toEqual([202, ...Array.from({ length: 9 }, () => 409)]);
    await api().post(`/v1/runs/${runId}/cancel`);
  });

  it('a run that is resumed right after it was paused goes on', async () => {
    const runId = await waiting(30_000);
    await inNode(runId);
    await pause(runId, { drainPolicy: 'immediate' });
    await resume(runId);
    await api().until(runId, (snapshot) => JSON.stringify(snapshot).includes('"attempt":1'));
    const types = (await api().events(runId)).map(({ type }) => type);
    expect(types.lastIndexOf('node.started')).toBeGreaterThan(types.indexOf('run.resumed'));
    await api().post(`/v1/runs/${runId}/cancel`);
  });
});

onEachStore('exclusive scopes', (host) => {
  const api = (): Api => host().as('editor');
  const enforce = { 'x-dedup': 'enforce' };
  const start = (scopeId: string, headers: Record<string, string> = enforce, by: Api = api()): Promise<Answer> =>
    by.post(RUNS, { workflowId: 'conformance-cancellable', scopeId }, headers);
  const stop = (answer: Answer, by: Api = api()): Promise<Answer> => by.post(`/v1/runs/${answer.body.runId}/cancel`);

  it('have one live run; a second one is refused with the first', async () => {
    const scopeId = unique('scope');
    const first = await start(scopeId);
    expect(first.status).toBe(201);
    const second = await start(scopeId);
    expectRefusal(second, 409, 'run_already_active');
    const { activeRunId, activeHost, retryAfter } = second.body.details;
    expect(activeRunId).toBe(first.body.runId);
    expect(['browser', 'cloud']).toContain(activeHost);
    expect(retryAfter).toBe(Number(second.headers.get('retry-after')));
    expect(retryAfter).toBeGreaterThan(0);
    await stop(first);
  });

  it.each(['conformance-noop', 'conformance-failure'])(
    'are free again when a run of %s has ended',
    async (workflowId) => {
      const scopeId = unique('scope');
      const first = await api().post(RUNS, { workflowId, scopeId }, enforce);
      await api().ended(first.body.runId);
      const second = await start(scopeId);
      expect(second.status).toBe(201);
      await stop(second);
    },
  );

  it('are free again when the run was cancelled', async () => {
    const scopeId = unique('scope');
    await stop(await start(scopeId));
    const second = await start(scopeId);
    expect(second.status).toBe(201);
    await stop(second);
  });

  it('do not concern other scopes, other tenants, or runs that do not ask', async () => {
    const scopeId = unique('scope');
    const answers = [await start(scopeId), await start(unique('scope')), await start(scopeId, {})];
    const foreign = await start(scopeId, enforce, host().as('other'));
    expect([...answers, foreign].map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    for (const answer of answers) await stop(answer);
    await stop(foreign, host().as('other'));
  });

  it('are seen as taken by a run that did not ask for exclusiveness', async () => {
    const scopeId = unique('scope');
    const first = await start(scopeId, {});
    const second = await start(scopeId);
    expectRefusal(second, 409, 'run_already_active');
    expect(second.body.details.activeRunId).toBe(first.body.runId);
    await stop(first);
  });

  it('let one of ten through at once', async () => {
    const scopeId = unique('scope');
    const answers = await Promise.all(Array.from({ length: 10 }, () => start(scopeId)));
    const started = answers.filter(({ status }) => status === 201);
    expect(started).toHaveLength(1);
    for (const answer of answers.filter(({ status }) => status !== 201)) {
      expectRefusal(answer, 409, 'run_already_active');
      expect(answer.body.details.activeRunId).toBe(started[0]!.body.runId);
    }
    await stop(started[0]!);
  });

  // core.md 2.2: a second live run for the same (tenantId, scopeId) gets 409.
  it('stay taken as long as any run of theirs is live', async () => {
    const scopeId = unique('scope');
    const [first, second] = [await start(scopeId, {}), await start(scopeId, {})];
    await stop(first);
    const third = await start(scopeId);
    if (third.status === 201) await stop(third);
    await stop(second);
    expectRefusal(third, 409, 'run_already_active');
    expect(third.body.details.activeRunId).toBe(second.body.runId);
  });
});

onOneStore('surfaces for test keys', (host) => {
  const test = (): Api => host().as('test');
  const streamText = (mockProvider: object, by: Api = test()): Promise<Answer> =>
    by.post(RUNS, { workflowId: 'conformance-stream-text', configurable: { mockProvider } });
  const force = (version: string, by: Api = test()): Promise<Answer> =>
    by.post(RUNS, { workflowId: 'conformance-version-fold' }, { 'x-force-engine-version': version });
  const chunksOf = async (runId: string): Promise<Answer['body'][]> =>
    ofType(await test().events(runId), 'output.chunk').map(({ payload }) => payload);

  it('refuse mock providers to live keys, and say which there are', async () => {
    const { mockProviders } = (await host().anonymous.get('/.well-known/openwop')).body.testing;
    const answer = await streamText({ id: 'stream-text' }, host().as('owner'));
    expectRefusal(answer, 403, 'mock_provider_forbidden');
    expect(answer.body.details).toEqual({ requestedProvider: 'stream-text', supportedProviders: mockProviders });
  });

  it('refuse a mock provider that is not advertised', async () => {
    expectRefusal(await streamText({ id: 'no-such-provider' }), 400, 'unsupported_mock_provider');
  });

  it.each([
    { id: 'stream-text', config: { tokens: 'x' } },
    { id: 'stream-text', config: { delayMsPerToken: 5_001 } },
    { id: 'stream-text', config: { delayMsPerToken: -1 } },
    { id: 'stream-text', config: { finishReason: 'tired' } },
    { id: 'tool-calls', config: { toolCalls: [{ id: 1 }] } },
    { id: 'error', config: { failAfterMs: 'soon' } },
  ])('refuse a config that a mock provider cannot have: %j', async (mockProvider) => {
    expectRefusal(await streamText(mockProvider), 400, 'validation_error');
  });

  it('stream-text has two tokens by default, with usage and an end on the last', async () => {
    const { body } = await streamText({ id: 'stream-text' });
    expect((await test().ended(body.runId)).status).toBe('completed');
    const chunks = await chunksOf(body.runId);
    expect(chunks).toHaveLength(2);
    expect(chunks.map(({ isLast }) => isLast)).toEqual([false, true]);
    expect(chunks[1].meta).toMatchObject({
      finishReason: 'stop',
      usage: { promptTokens: 1, completionTokens: 2, totalTokens: 3 },
    });
    for (const { meta, nodeId, runId } of chunks) {
      expect(meta.model).toBe('mock-stream-text-v1');
      expect({ nodeId, runId }).toEqual({ nodeId: 'ai', runId: body.runId });
    }
    expect(chunks[0].meta).not.toHaveProperty('finishReason');
  });

  it('stream-text says what it was told to say, in order', async () => {
    const tokens = ['The', ' quick', '', ' brown', ' fox', '\n', '🦊'];
    const config = {
      tokens,
      finishReason: 'length',
      model: 'mock-x',
      usage: { promptTokens: 5, completionTokens: 6, totalTokens: 11 },
    };
    const { body } = await streamText({ id: 'stream-text', config });
    await test().ended(body.runId);
    const chunks = await chunksOf(body.runId);
    expect(chunks.map(({ chunk }) => chunk)).toEqual(tokens);
    expect(chunks.map(({ isLast }) => isLast)).toEqual(tokens.map((_, index) => index === tokens.length - 1));
    expect(chunks.at(-1).meta).toEqual({ model: 'mock-x', finishReason: 'length', usage: config.usage });
  });

  it('tool-calls has its calls on the last chunk', async () => {
    const toolCalls = [
      { id: 'c1', name: 'search', arguments: { q: 'x' } },
      { id: 'c2', name: 'open', arguments: {} },
    ];
    const { body } = await streamText({ id: 'tool-calls', config: { toolCalls } });
    expect((await test().ended(body.runId)).status).toBe('completed');
    const last = (await chunksOf(body.runId)).at(-1);
    expect(last).toMatchObject({ isLast: true, meta: { finishReason: 'tool_calls', toolCalls } });
  });

  it('error fails the run as it was told to', async () => {
    const config = { code: 'provider_overloaded', message: 'Busy today', failAfterMs: 10 };
    const { body } = await streamText({ id: 'error', config });
    expect(await test().ended(body.runId)).toMatchObject({
      status: 'failed',
      error: { code: 'provider_overloaded', message: 'Busy today' },
    });
  });

  it('usage-only has one empty chunk with usage', async () => {
    const usage = { promptTokens: 7, completionTokens: 0, totalTokens: 7 };
    const { body } = await streamText({ id: 'usage-only', config: { usage } });
    expect((await test().ended(body.runId)).status).toBe('completed');
    expect(await chunksOf(body.runId)).toMatchObject([{ chunk: '', isLast: true, meta: { usage } }]);
  });

  it('without a provider a model call fails as a capability that is not there', async () => {
    const { body } = await test().post(RUNS, { workflowId: 'conformance-stream-text' });
    expect(await test().ended(body.runId)).toMatchObject({
      status: 'failed',
      error: { code: 'capability_not_provided' },
    });
  });

  it('forcing an engine version is refused to live keys', async () => {
    for (const version of ['0', '1', '99']) {
      expectRefusal(await force(version, host().as('owner')), 403, 'force_engine_version_forbidden');
    }
  });

  it('runs complete and can be read under every engine version that is advertised', async () => {
    const { min, max } = (await host().anonymous.get('/.well-known/openwop')).body.testing.forceEngineVersionRange;
    for (let version = min; version <= max; version++) {
      const { status, body } = await force(String(version));
      expect(status).toBe(201);
      const snapshot = await test().ended(body.runId);
      expect(snapshot).toMatchObject({ status: 'completed', engineVersion: String(version) });
      for (const event of await test().events(body.runId)) expect(event.engineVersion).toBe(String(version));
    }
  });

  it('versions beyond the range are refused, with the range', async () => {
    const { min, max } = (await host().anonymous.get('/.well-known/openwop')).body.testing.forceEngineVersionRange;
    for (const version of [String(min - 1), String(max + 1), '99999', 'one', '1.5', 'NaN', '-']) {
      const answer = await force(version);
      expectRefusal(answer, 400, 'unsupported_force_engine_version');
      expect(answer.body.details).toMatchObject({ min, max });
    }
  });

  it('a host without the conformance switch has no mock providers, even for test keys', async () => {
    const production = await startTestHost('sqlite', inject('postgresUrl'), { conformance: false });
    try {
      const api = production.as('test');
      const id = await register(api, workflow([node('ai', 'core.ai.callPrompt')]));
      const answer = await api.post(RUNS, { workflowId: id, configurable: { mockProvider: { id: 'stream-text' } } });
      expect([400, 403]).toContain(answer.status);
      expect(['mock_provider_forbidden', 'unsupported_mock_provider']).toContain(answer.body.error);
    } finally {
      await production.stop();
    }
  });

  it.each(['0x1', '1e0', '', '+1', '1.0'])(
    'a forced version that is no decimal integer is refused: "%s"',
    async (version) => {
      expectRefusal(await force(version), 400, 'unsupported_force_engine_version');
    },
  );
});

onEachStore('finding runs', (host) => {
  const api = (): Api => host().as('editor');
  const list = async (query = '', by: Api = api()): Promise<Answer['body']> => (await by.get(`${LIST}?${query}`)).body;
  const idsOf = ({ items }: Answer['body']): string[] => items.map(({ runId }: { runId: string }) => runId);

  /** All pages of a list. */
  async function pages(query: string, between: () => Promise<void> = async () => {}): Promise<string[][]> {
    const found: string[][] = [];
    for (let cursor = ''; ; ) {
      const page = await list(`${query}${cursor}`);
      found.push(idsOf(page));
      if (page.nextCursor === undefined) return found;
      cursor = `&cursor=${encodeURIComponent(page.nextCursor)}`;
      await between();
    }
  }

  it('shows newest first, with what a list needs', async () => {
    const tag = unique('tag');
    const ids: string[] = [];
    for (const id of ['conformance-noop', 'conformance-failure', 'conformance-noop']) {
      ids.unshift(await api().run(id, { tags: [tag] }));
      await api().ended(ids[0]!);
    }
    const { items } = await list(`tag=${tag}`);
    expect(items.map(({ runId }: { runId: string }) => runId)).toEqual(ids);
    expect(items[1]).toMatchObject({
      workflowId: 'conformance-failure',
      status: 'failed',
      errorCode: 'conformance_test_failure',
      outcome: expect.stringMatching(/\w/),
    });
    expect(items[0]).toMatchObject({ workflowId: 'conformance-noop', workflowVersion: 1, status: 'completed' });
    for (const { createdAt, updatedAt, endedAt } of items) {
      expect(Date.parse(createdAt)).toBeLessThanOrEqual(Date.parse(endedAt));
      expect(Date.parse(updatedAt)).toBe(Date.parse(endedAt));
    }
  });

  it('filters by how runs came to be, and says which they come from', async () => {
    const tag = unique('tag');
    const inner = await register(
      api(),
      workflow([node('say', 'core.identity', { inputs: { text: fixed('Hello\nAda') } })]),
    );
    const outer = workflow([node('do', 'core.subWorkflow', { config: { workflowId: inner } })]);
    const parent = await api().run(await register(api(), outer), { tags: [tag] });
    const { childRuns } = await api().ended(parent);
    const childRunId = childRuns[0].runId;
    const direct = await api().run(inner, { tags: [tag] });
    await api().ended(direct);
    const { runId: replay } = (await api().post(`/v1/runs/${direct}:fork`, { mode: 'replay', fromSeq: 0 })).body;
    await api().ended(replay);
    const by = (origin: string) => list(`workflowId=${inner}&origin=${origin}`);
    expect((await by('child')).items).toMatchObject([{ runId: childRunId, parentRunId: parent, outcome: 'Hello Ada' }]);
    expect((await by('fork')).items).toMatchObject([{ runId: replay, forkedFrom: { runId: direct, mode: 'replay' } }]);
    expect(idsOf(await by('direct'))).toEqual([direct]);
    expect(idsOf(await list(`workflowId=${inner}&preview=true`))).toEqual([]);
    expectRefusal(await api().get(`${LIST}?origin=elsewhere`), 400, 'validation_error');
  });

  it('pages through many runs without showing one twice or missing one, while new ones arrive', async () => {
    const tag = unique('tag');
    const start = (): Promise<string> => api().run('conformance-noop', { tags: [tag] });
    const before = await Promise.all(Array.from({ length: 53 }, start));
    const arrived: string[] = [];
    const found = await pages(`tag=${tag}&limit=7`, async () => {
      arrived.push(...(await Promise.all([start(), start()])));
    });
    const seen = found.flat();
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.filter((runId) => before.includes(runId)).sort()).toEqual(before.toSorted());
    expect(seen).toEqual(seen.toSorted().toReversed());
    for (const page of found.slice(0, -1)) expect(page).toHaveLength(7);
    expect((await pages(`tag=${tag}&limit=50`)).flat().sort()).toEqual([...before, ...arrived].sort());
  });

  it('ends without a cursor when the last page is full', async () => {
    const tag = unique('tag');
    await Promise.all(Array.from({ length: 6 }, () => api().run('conformance-noop', { tags: [tag] })));
    expect((await pages(`tag=${tag}&limit=3`)).map((page) => page.length)).toEqual([3, 3]);
    expect((await list(`tag=${tag}&limit=6`)).nextCursor).toBeUndefined();
  });

  it('has pages of fifty unless asked otherwise, and of two hundred at most', async () => {
    const tag = unique('tag');
    await Promise.all(Array.from({ length: 52 }, () => api().run('conformance-noop', { tags: [tag] })));
    expect((await list(`tag=${tag}`)).items).toHaveLength(50);
    expect((await list(`tag=${tag}&limit=200`)).items).toHaveLength(52);
  });

  it('filters by status, workflow, tag and time, and by all of them at once', async () => {
    const tag = unique('tag');
    const early = await api().run('conformance-noop', { tags: [tag, 'shared'] });
    await api().ended(early);
    const failed = await api().run('conformance-failure', { tags: [tag] });
    await api().ended(failed);
    const live = await api().run('conformance-cancellable', { tags: [tag, 'shared'] });
    expect(idsOf(await list(`tag=${tag}&status=completed`))).toEqual([early]);
    expect(idsOf(await list(`tag=${tag}&status=failed`))).toEqual([failed]);
    expect(idsOf(await list(`tag=${tag}&status=running`))).toEqual([live]);
    expect(idsOf(await list(`tag=${tag}&workflowId=conformance-failure`))).toEqual([failed]);
    expect(idsOf(await list(`tag=${tag}&workflowId=conformance-failure&status=completed`))).toEqual([]);
    expect(idsOf(await list(`tag=${unique('tag')}`))).toEqual([]);
    expect(idsOf(await list('tag=shared')).slice(0, 2)).toEqual([live, early]);
    await api().post(`/v1/runs/${live}/cancel`);
    expect(idsOf(await list(`tag=${tag}&status=cancelled`))).toEqual([live]);
  });

  it('filters by time: since is included, until is not', async () => {
    const tag = unique('tag');
    const ids = [await api().run('conformance-noop', { tags: [tag] })];
    const at = async (runId: string): Promise<number> =>
      Date.parse((await api().get(`/v1/runs/${runId}`)).body.createdAt);
    // Runs until the clock has moved on between two of them.
    while ((await at(ids.at(-1)!)) === (await at(ids[0]!)))
      ids.push(await api().run('conformance-noop', { tags: [tag] }));
    const last = ids.at(-1)!;
    const boundary = new Date(await at(last)).toISOString();
    expect(idsOf(await list(`tag=${tag}&since=${boundary}`))).toEqual([last]);
    expect(idsOf(await list(`tag=${tag}&until=${boundary}`))).toEqual(ids.slice(0, -1).toReversed());
    const shifted = boundary.replace('Z', '+00:00').replace('+', '%2B');
    expect(idsOf(await list(`tag=${tag}&since=${shifted}`))).toEqual([last]);
    expect(idsOf(await list(`tag=${tag}&since=1969-01-01T00:00:00Z`)).length).toBe(ids.length);
    expect(idsOf(await list(`tag=${tag}&until=1969-01-01T00:00:00Z`))).toEqual([]);
  });

  it('pages within a window of time', async () => {
    const tag = unique('tag');
    await Promise.all(Array.from({ length: 8 }, () => api().run('conformance-noop', { tags: [tag] })));
    const until = new Date(Date.now() + 60_000).toISOString();
    const seen = (await pages(`tag=${tag}&limit=3&since=2020-01-01T00:00:00Z&until=${until}`)).flat();
    expect(new Set(seen).size).toBe(8);
  });

  it('shows child runs with the run that started them', async () => {
    const parent = await api().ended(await api().run('conformance-subworkflow-parent'));
    const { items } = await list('workflowId=conformance-subworkflow-child&limit=200');
    const child = items.find(({ runId }: { runId: string }) => runId === parent.childRuns[0].runId);
    expect(child).toMatchObject({ parentRunId: parent.runId, status: 'completed' });
  });

  it('shows a tenant only its own', async () => {
    const tag = unique('tag');
    const mine = await api().run('conformance-noop', { tags: [tag] });
    const theirs = await host()
      .as('other')
      .run('conformance-noop', { tags: [tag] });
    expect(idsOf(await list(`tag=${tag}`))).toEqual([mine]);
    expect(idsOf(await list(`tag=${tag}`, host().as('other')))).toEqual([theirs]);
    expect(idsOf(await list(`tag=${tag}`, host().as('workspace')))).toEqual([]);
  });
});

onOneStore('the fixtures', (host) => {
  const api = (): Api => host().as('editor');
  const finish = async (
    id: string,
    rest: object = {},
  ): Promise<{ snapshot: Answer['body']; events: Answer['body'][] }> => {
    const snapshot = await api().ended(await api().run(id, rest));
    return { snapshot, events: await api().events(snapshot.runId) };
  };

  it('noop starts, completes its node, completes', async () => {
    const { snapshot, events } = await finish('conformance-noop');
    expect(snapshot.status).toBe('completed');
    expect(typesOf(events)).toEqual(['run.started', 'node.started', 'node.completed', 'run.completed']);
    expect(events[2].payload).toEqual({ nodeId: 'noop' });
  });

  it('identity gives nested JSON back as it was', async () => {
    const payload = { a: [1, 2.5, -0.001, 1e21, null, true, ''], b: { c: { d: [[[]], {}] } }, 'ü"\\': '\u2028' };
    const { snapshot, events } = await finish('conformance-identity', { inputs: { payload } });
    expect(snapshot.variables.payload).toEqual(payload);
    expect(ofType(events, 'node.completed')[0].payload.outputs).toEqual({ payload });
  });

  it('delay waits a second unless told otherwise, and runs meanwhile', async () => {
    const runId = await api().run('conformance-delay');
    await api().until(runId, ({ status }) => status === 'running');
    const snapshot = await api().ended(runId);
    expect(snapshot.status).toBe('completed');
    expect(Date.parse(snapshot.completedAt) - Date.parse(snapshot.startedAt)).toBeGreaterThanOrEqual(1_000);
    expect(snapshot.nodeStates.wait.outputs).toEqual({ waitedMs: 1_000 });
  });

  it('delay waits as long as the input says', async () => {
    const { snapshot } = await finish('conformance-delay', { inputs: { delayMs: 20, delaySeconds: 99 } });
    expect(snapshot.nodeStates.wait.outputs).toEqual({ waitedMs: 20 });
  });

  const delayOf = async (delayMs: unknown): Promise<Answer['body']> => {
    const waits = node('wait', 'core.delay', { inputs: { delayMs: fixed(delayMs) } });
    return api().ended(await api().run(await register(api(), workflow([waits]))));
  };

  it.each([[-1], ['soon'], [[1]], [{}], [true]])('a delay of %j fails its node', async (delayMs) => {
    expect(await delayOf(delayMs)).toMatchObject({ status: 'failed', error: { code: 'validation_error' } });
  });

  it('an input of another type than its variable is refused at creation', async () => {
    for (const delayMs of ['soon', [1], {}, true]) {
      const answer = await api().post(RUNS, { workflowId: 'conformance-delay', inputs: { delayMs } });
      expectRefusal(answer, 400, 'validation_error');
    }
  });

  it('cancellable is cancelled within five seconds', async () => {
    const runId = await api().run('conformance-cancellable');
    await api().until(runId, ({ status }) => status === 'running');
    const startedAt = Date.now();
    await api().post(`/v1/runs/${runId}/cancel`);
    expect((await api().ended(runId)).status).toBe('cancelled');
    expect(Date.now() - startedAt).toBeLessThan(5_000);
  });

  it('failure fails its node, then the run, with one error object', async () => {
    const { snapshot, events } = await finish('conformance-failure');
    expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'conformance_test_failure' } });
    expect(typesOf(events)).toEqual(['run.started', 'node.started', 'node.failed', 'run.failed']);
    const [failed, ended] = events.slice(-2);
    expect(failed).toMatchObject({
      nodeId: 'fail',
      payload: { nodeId: 'fail', error: { code: 'conformance_test_failure', message: expect.stringMatching(/./) } },
    });
    expect(ended.payload).toMatchObject({ error: { code: failed.payload.error.code }, failedNodeId: 'fail' });
    expect(ended.causationId).toBe(failed.eventId);
  });

  it('idempotent completes whatever the nonce is', async () => {
    expect((await finish('conformance-idempotent', { inputs: { nonce: 'x' } })).snapshot.status).toBe('completed');
  });

  it('multi-node completes a, b, c in that order', async () => {
    const { snapshot } = await finish('conformance-multi-node');
    const { body } = await api().get(`/v1/runs/${snapshot.runId}/events/poll?lastSequence=0&timeout=1`);
    expect(ofType(body.events, 'node.completed').map(({ nodeId }) => nodeId)).toEqual(['a', 'b', 'c']);
  });

  it('capability-missing is accepted, never starts its node, and names what is missing', async () => {
    const { snapshot, events } = await finish('conformance-capability-missing');
    expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'capability_not_provided' } });
    expect(snapshot.error.message).toContain('conformance.never-provided');
    expect(typesOf(events)).not.toContain('node.started');
  });

  it('channel-ttl keeps the entry that is young enough', async () => {
    const { snapshot, events } = await finish('conformance-channel-ttl');
    expect(snapshot.status).toBe('completed');
    expect(snapshot.variables.events).toEqual([{ value: 'd', _ts: expect.any(Number) }]);
    expect(snapshot.variables.events[0]._ts).toBeGreaterThan(0);
    expect(snapshot).not.toHaveProperty('channels');
    const writes = ofType(events, 'channel.written');
    expect(writes.map(({ payload }) => payload.value.value)).toEqual(['a', 'b', 'c', 'd']);
    for (const { payload } of writes) {
      expect(payload).toMatchObject({ channel: 'events', reducer: 'append', writtenAt: expect.stringMatching(/Z$/) });
    }
  });

  it('subworkflow-parent runs its child and takes its result', async () => {
    const { snapshot, events } = await finish('conformance-subworkflow-parent');
    expect(snapshot).toMatchObject({ status: 'completed', variables: { childOutcome: 'child-completed' } });
    const call = ofType(events, 'node.completed').find(({ nodeId }) => nodeId === 'subwf-call');
    expect(call.payload.outputs).toMatchObject({ childStatus: 'completed' });
    const { childRunId } = call.payload.outputs;
    expect(snapshot.childRuns).toEqual([{ runId: childRunId, status: 'completed' }]);
    const { status, body: child } = await api().get(`/v1/runs/${childRunId}`);
    expect(status).toBe(200);
    expect(child).toMatchObject({
      status: 'completed',
      workflowId: 'conformance-subworkflow-child',
      parentRunId: snapshot.runId,
      parentNodeId: 'subwf-call',
    });
    expect(typesOf(await api().events(childRunId)).slice(0, 1)).toEqual(['run.started']);
  });

  it('subworkflow-input-mapping hands the parent’s value down over the child’s default', async () => {
    for (const [inputs, expected] of [
      [{}, 'prd-1'],
      [{ currentPrdId: 'prd-2' }, 'prd-2'],
    ] as const) {
      const { snapshot } = await finish('conformance-subworkflow-input-mapping', { inputs });
      const child = (await api().get(`/v1/runs/${snapshot.childRuns[0].runId}`)).body;
      expect(child.variables.receivedPrdId).toBe(expected);
    }
  });

  it('subworkflow-input-mapping-no-default leaves the child its default, and never gives it null', async () => {
    const { snapshot } = await finish('conformance-subworkflow-input-mapping-no-default');
    expect(snapshot.status).toBe('completed');
    const child = (await api().get(`/v1/runs/${snapshot.childRuns[0].runId}`)).body;
    expect([undefined, 'baked-in']).toContain(child.variables.receivedPrdId);
  });

  it('dispatch-cancellable-child waits to be cancelled', async () => {
    const runId = await api().run('conformance-dispatch-cancellable-child');
    await api().until(runId, ({ status }) => status === 'running');
    await api().post(`/v1/runs/${runId}/cancel`);
    expect((await api().ended(runId)).status).toBe('cancelled');
  });

  // execution.md 4.2: the first present of four; not a number is a validation_error.
  it('a delay of null fails its node', async () => {
    expect(await delayOf(null)).toMatchObject({ status: 'failed', error: { code: 'validation_error' } });
  });

  it('read back by name are the same for everyone, and however often', async () => {
    const { fixtures } = (await host().anonymous.get('/.well-known/openwop')).body;
    for (const id of fixtures) {
      const [one, two] = [
        await host().as('viewer').get(`/v1/workflows/${id}`),
        await host().as('other').get(`/v1/workflows/${id}`),
      ];
      expect(two.body).toEqual(one.body);
    }
  });
});

onEachStore('many runs at once', (host) => {
  it('all come to their end, each with a log of its own', async () => {
    const api = host().as('editor');
    const kinds = [
      'conformance-noop',
      'conformance-multi-node',
      'conformance-failure',
      'conformance-subworkflow-parent',
    ];
    const ids = await Promise.all(Array.from({ length: 200 }, (_, index) => api.run(kinds[index % kinds.length]!)));
    expect(new Set(ids).size).toBe(200);
    await Promise.all(
      ids.map(async (runId, index) => {
        const snapshot = await api.ended(runId);
        expect(snapshot.status).toBe(index % 4 === 2 ? 'failed' : 'completed');
        const events = await api.events(runId);
        expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, at) => at));
        expect(new Set(events.map((event) => event.runId))).toEqual(new Set([runId]));
      }),
    );
  });

  it('a run of a thousand nodes in a line keeps its order', async () => {
    const api = host().as('editor');
    const names = Array.from({ length: 1_000 }, (_, index) => `n${index}`);
    const definition = workflow(
      names.map((id) => node(id)),
      names.slice(1).map((id, index) => edge(names[index]!, id)),
    );
    const runId = await api.run(await register(api, definition));
    expect((await api.ended(runId)).status).toBe('completed');
    const events = await api.events(runId);
    expect(ofType(events, 'node.completed').map(({ nodeId }) => nodeId)).toEqual(names);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, at) => at));
  });

  it('a run of two hundred branches brings all of them together', async () => {
    const api = host().as('editor');
    const names = Array.from({ length: 200 }, (_, index) => `b${index}`);
    const definition = workflow(
      [node('start'), ...names.map((id) => node(id, 'core.delay', { config: { ms: 5 } })), node('end')],
      names.flatMap((id) => [edge('start', id), edge(id, 'end')]),
    );
    const runId = await api.run(await register(api, definition));
    expect((await api.ended(runId)).status).toBe('completed');
    const completed = ofType(await api.events(runId), 'node.completed').map(({ nodeId }) => nodeId);
    expect(completed.toSorted()).toEqual(['start', ...names, 'end'].toSorted());
    expect(completed.at(-1)).toBe('end');
  });

  it('start with variables large and small', async () => {
    const api = host().as('editor');
    const big = { text: 'x'.repeat(400_000), list: Array.from({ length: 5_000 }, (_, index) => ({ index })) };
    const echoes = node('echo', 'core.identity', { inputs: { big: variable('big') } });
    const runId = await api.run(await register(api, workflow([echoes])), { inputs: { big } });
    expect((await api.ended(runId)).nodeStates.echo.outputs.big).toEqual(big);
  });
});
