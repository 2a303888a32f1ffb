import { expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { line, node, register, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onOneStore } from '../support/stores.ts';

/** durability.md 5.11: a run in one document, redacted, bounded, and true to the log. */

const schemas = loadSchemas();
const BYTES_MAX = 8_000_000;
const RUN_MEMBERS = [
  'runId',
  'workflowId',
  'status',
  'owner',
  'currentNodeId',
  'startedAt',
  'endedAt',
  'error',
  'inputs',
  'variables',
  'nodeStates',
  'engineVersion',
  'eventLogSchemaVersion',
];

/** The published schema has an older list of statuses and an older spelling of the version. */
function expectShape(bundle: Answer['body']): void {
  const { bundleVersion, run, ...rest } = bundle;
  expect(schemas.bundle({ ...rest, bundleVersion: '1.0', run: { ...run, status: 'completed' } })).toEqual([]);
  expect(bundleVersion).toBe('1');
  for (const event of bundle.events) expect(schemas.event(event)).toEqual([]);
  expect(Object.keys(run).filter((member) => !RUN_MEMBERS.includes(member))).toEqual([]);
}

onOneStore('a debug bundle', (host) => {
  const api = (): Api => host().as('editor');
  const bundle = (runId: string, query = '', by: Api = api()): Promise<Answer> =>
    by.get(`/v1/runs/${runId}/debug-bundle${query}`);
  const done = async (workflowId: string, rest: object = {}, by: Api = api()): Promise<string> => {
    const runId = await by.run(workflowId, rest);
    await by.ended(runId);
    return runId;
  };

  it('is advertised', async () => {
    expect((await api().get('/.well-known/openwop')).body.debugBundle).toEqual({ supported: true });
  });

  it('has the run, its whole log and what it came to', async () => {
    const runId = await done('conformance-multi-node');
    const { status, headers, body } = await bundle(runId);
    expect(status).toBe(200);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('content-type')).toMatch(/^application\/json\b/);
    expectShape(body);
    const { body: discovery } = await api().get('/.well-known/openwop');
    expect(body.host).toEqual(discovery.implementation);
    expect(Date.parse(body.generatedAt)).toBeGreaterThan(0);
    const { body: snapshot } = await api().get(`/v1/runs/${runId}`);
    expect(body.run).toMatchObject({ runId, workflowId: 'conformance-multi-node', status: 'completed', error: null });
    expect(body.run.endedAt).toBe(snapshot.endedAt);
    const { body: polled } = await api().get(`/v1/runs/${runId}/events/poll`);
    expect(body.events).toEqual(polled.events);
    expect(body.metrics).toEqual({ openwopCost: null, nodeCount: 3, eventCount: polled.events.length });
    expect(body).toMatchObject({ redactionApplied: true, redactionMode: 'mask', truncated: false });
    expect(body).not.toHaveProperty('truncatedReason');
  });

  it('has a span for the run, each node and each attempt, with hexadecimal ids', async () => {
    const runId = await done('conformance-multi-node');
    const { spans } = (await bundle(runId)).body;
    const [run, ...nodes] = spans;
    expect(run).toMatchObject({ name: 'openwop.run', parentSpanId: null, status: { code: 'ok' } });
    expect(run.attributes).toEqual({
      'openwop.run_id': runId,
      'openwop.workflow_id': 'conformance-multi-node',
      'openwop.protocol_version': '1.0',
      'openwop.tenant_id': 'alpha',
    });
    expect(nodes).toHaveLength(6);
    for (const span of spans) {
      expect(span.spanId).toMatch(/^[0-9a-f]{16}$/);
      expect(Date.parse(span.endedAt)).toBeGreaterThanOrEqual(Date.parse(span.startedAt));
      expect(span).not.toHaveProperty('traceId');
    }
    for (const [index, { name, parentSpanId, attributes }] of nodes.entries()) {
      const isAttempt = index % 2 === 1;
      expect(name).toBe(`openwop.node.${attributes['openwop.node_type']}${isAttempt ? '.attempt' : ''}`);
      expect(parentSpanId).toBe(isAttempt ? nodes[index - 1].spanId : run.spanId);
      expect(attributes).toMatchObject({ 'openwop.run_id': runId, 'openwop.node_attempt': 0 });
    }
    expect((await bundle(runId)).body.spans).toEqual(spans);
  });

  it('tells why a run failed, and what models cost it', async () => {
    const failed = (await bundle(await done('conformance-failure'))).body;
    expectShape(failed);
    expect(failed.run).toMatchObject({ status: 'failed', error: { code: expect.any(String) } });
    expect(failed.spans[0].status).toMatchObject({ code: 'error' });
    const usage = { promptTokens: 11, completionTokens: 22, totalTokens: 33 };
    const mockProvider = { id: 'usage-only', config: { usage } };
    const asked = await done('conformance-stream-text', { configurable: { mockProvider } }, host().as('test'));
    const cost = { tokens: { input: 11, output: 22 }, model: 'mock-usage-only-v1', provider: 'mock' };
    expect((await bundle(asked, '', host().as('test'))).body.metrics.openwopCost).toEqual(cost);
    const snapshot = (await host().as('test').get(`/v1/runs/${asked}`)).body;
    expect(snapshot.metrics).toEqual({ openwopCost: cost });
    expect(loadSchemas().snapshot(snapshot)).toEqual([]);
    expect((await api().get(`/v1/runs/${await done('conformance-noop')}`)).body).not.toHaveProperty('metrics');
  });

  it('can be had of a run that waits', async () => {
    const runId = await api().run('conformance-approval');
    await api().until(runId, ({ status }) => status === 'waiting-approval');
    const { body } = await bundle(runId);
    expectShape(body);
    expect(body.run).toMatchObject({ status: 'waiting-approval', currentNodeId: 'gate', endedAt: null });
    expect(body.spans.at(-1)).toMatchObject({ name: 'openwop.interrupt', endedAt: null });
    expect(body.metrics.eventCount).toBe(body.events.length);
  });

  it('has what people said about the run, for those who may read that', async () => {
    const runId = await done('conformance-noop');
    expect((await bundle(runId)).body.annotations).toEqual([]);
    for (const signal of [{ kind: 'rating', rating: 2 }, { kind: 'flag' }]) {
      expect((await api().post(`/v1/runs/${runId}/annotations`, { signal, note: 'look here' })).status).toBe(201);
    }
    const { body } = await bundle(runId);
    expectShape(body);
    expect(body.annotations).toEqual((await api().get(`/v1/runs/${runId}/annotations`)).body.annotations);
    expect(body.annotations).toHaveLength(2);
    const other = await done('conformance-noop');
    expect((await bundle(other)).body.annotations).toEqual([]);
  });

  it('has no value that a caller put in, and no name that a caller made up', async () => {
    const canary = 'cred_walrus-4711-walrus';
    const inputs = { userField: canary, nested: { deep: [canary] }, 'walrus-name': 1 };
    const rest = { inputs, metadata: { note: 'walrus' }, configurable: { note: 'walrus' } };
    const { text, body } = await bundle(await done('conformance-noop', rest));
    expect(text).not.toContain(canary);
    expect(text).not.toContain('walrus');
    expect(body.run).toMatchObject({ inputs: {}, variables: {} });
    const declaring = await register(
      api(),
      workflow([node('a')], [], {
        variables: [
          { name: 'kept', type: 'string' },
          { name: 'unset', type: 'string' },
        ],
      }),
    );
    const declared = await bundle(await done(declaring, { inputs: { kept: 'walrus' } }));
    expect(declared.text).not.toContain('walrus');
    expect(declared.body.run.variables).toEqual({ kept: '[REDACTED]' });
  });

  it('names no machine, no address and no database', async () => {
    const { text } = await bundle(await done('conformance-noop'));
    expect(text).not.toMatch(/postgres:|127\.0\.0\.1|localhost|capstan\.db|\/tmp\//);
  });

  it('stops at as many events as asked for, and says so', async () => {
    const runId = await done('conformance-multi-node');
    const { events } = (await bundle(runId)).body;
    const { body } = await bundle(runId, '?maxEvents=2');
    expectShape(body);
    expect(body).toMatchObject({ truncated: true, truncatedReason: 'events_truncated_to_max_events' });
    expect(body.events).toEqual(events.slice(0, 2));
    expect(body.metrics.eventCount).toBe(events.length);
    const none = (await bundle(runId, '?maxEvents=0')).body;
    expect(none).toMatchObject({ truncated: true, events: [] });
    for (const enough of [events.length, 999_999_999_999_999]) {
      expect((await bundle(runId, `?maxEvents=${enough}`)).body).toMatchObject({ truncated: false, events });
    }
  });

  it('is no larger than eight megabytes: it has as many events as fit, and says so', async () => {
    const speakers = Array.from({ length: 10 }, (_, index) => `speaker-${index}`);
    const talk = workflow(
      speakers.map((id) => node(id, 'core.ai.callPrompt')),
      line(...speakers),
    );
    const by = host().as('test');
    await register(by, talk);
    const tokens = Array.from({ length: 100 }, (_, index) => `${index} ${'ü'.repeat(4_600)}`);
    const configurable = { mockProvider: { id: 'stream-text', config: { tokens } } };
    const runId = await done(talk.id, { configurable }, by);
    const { text, body } = await bundle(runId, '', by);
    const all = await by.events(runId);
    expect(body).toMatchObject({ truncated: true, truncatedReason: 'events_truncated_to_size_cap' });
    expect(body.metrics).toMatchObject({ eventCount: all.length, nodeCount: 10 });
    expect(body.events).toEqual(all.slice(0, body.events.length));
    const next = Buffer.byteLength(JSON.stringify(all[body.events.length]));
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(BYTES_MAX);
    expect(Buffer.byteLength(text)).toBeGreaterThan(BYTES_MAX - next - 300);
    expect(body.spans).toHaveLength(21);
  });

  it.each(['-1', '1.5', 'two', '', '1e3', '9'.repeat(16)])('is refused for maxEvents=%s', async (maxEvents) => {
    const runId = await done('conformance-noop');
    expectRefusal(await bundle(runId, `?maxEvents=${maxEvents}`), 400, 'validation_error');
  });

  it('is handed to those who may see the run, and to nobody else', async () => {
    const runId = await done('conformance-noop');
    expect((await bundle(runId, '', host().as('viewer'))).status).toBe(200);
    expectRefusal(await bundle('run-nobody-knows'), 404, 'not_found');
    expectRefusal(await bundle(runId, '', host().as('other')), 404, 'not_found');
    expectRefusal(await bundle(runId, '', host().as('workspace')), 404, 'not_found');
    expectRefusal(await bundle(runId, '', host().as('nothing')), 403, 'forbidden');
    expectRefusal(await bundle(runId, '', host().anonymous), 401, 'unauthenticated');
  });
});
