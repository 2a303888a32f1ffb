import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import type { Answer, Api } from '../support/api.ts';
import { type CollectedSpan, Collector, hasRun, outline, withoutAppends } from '../support/collector.ts';
import { fixed, line, node, register, unique, workflow } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { approval, resolve, waits } from '../support/interrupts.ts';
import { killableHosts } from '../support/killed.ts';
import { McpHttpServer } from '../support/mcp-http.ts';
import { ModelServer } from '../support/model-server.ts';
import { Receiver } from '../support/receiver.ts';
import { pictureOf } from '../support/trace-picture.ts';
import { until } from '../support/until.ts';

/**
 * durability.md 8.1, 8.2, 8.4. Goal: what a run did is one tree in the operator's own tracing system.
 * Method: a collector that reads OTLP with a decoder of its own, and real models, tools and receivers to call.
 */

/** The picture in the documentation is of such a trace; `npm run trace-picture` draws it anew. */
const PICTURE = new URL('../../docs/telemetry-trace.svg', import.meta.url);
const PICTURE_TITLE = 'A trace: an agent with a tool, an approval, a child run and webhooks';
const SPAN_ID = '00f067aa0ba902b7';
const CANARY = 'walrus-4711';
const SECRET = `sk-${CANARY}-${'x'.repeat(24)}`;
let traces = 0;
const newTrace = (flags = '01') => {
  const traceId = (++traces).toString(16).padStart(32, 'a');
  return { traceId, headers: { traceparent: `00-${traceId}-${SPAN_ID}-${flags}` } };
};

const telemetryTo = (collector: Collector, environment: Record<string, string> = {}) => {
  const { traces, sentMetrics } = readConfig(
    {},
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_METRICS_EXPORTER: 'none',
      OTEL_BSP_SCHEDULE_DELAY: '20',
      OTEL_TRACES_SAMPLER: 'parentbased_always_on',
      ...environment,
    },
  );
  return { traces, sentMetrics };
};

async function installAgent(api: Api): Promise<string> {
  const name = `vendor.acme.${unique('agents')}`;
  const agentId = `${name}.one`;
  const agent = { agentId, persona: 'One', modelClass: 'classification', systemPrompt: 'You sort tickets.' };
  const manifest = {
    name,
    version: '1.0.0',
    engines: { openwop: '>=1.1.0 <2.0.0' },
    runtime: { language: 'remote', entry: 'pack.json' },
    agents: [{ ...agent, toolAllowlist: ['mcp:web.echo'] }],
  };
  const answer = await api.post('/v1/host/capstan/packs', { manifest });
  expect(answer.status, answer.text).toBe(201);
  return agentId;
}

/** Asks for a tool first, and decides then. */
function scriptModel(model: ModelServer): void {
  model.on('m', ({ body }, speech) => {
    const hasAsked = body.messages.some(({ role }: Answer['body']) => role === 'assistant');
    const said = JSON.stringify({ decision: `billing ${CANARY}`, confidence: 0.9, reasoning: CANARY });
    if (hasAsked) speech.text(said).end();
    else {
      const call = { name: 'mcp_web_echo', arguments: JSON.stringify({ text: CANARY }) };
      speech.delta({ tool_calls: [{ index: 0, id: 'call_0', type: 'function', function: call }] }).end('tool_calls');
    }
  });
}

const only = (spans: readonly CollectedSpan[], name: string): CollectedSpan => {
  const found = spans.filter((span) => span.name === name);
  expect(found, `${name} in\n${outline(spans).join('\n')}`).toHaveLength(1);
  return found[0]!;
};
/** Spans that belong to a parent which did not arrive, apart from those that the caller's span is the parent of. */
const orphans = (spans: readonly CollectedSpan[]): string[] => {
  const ids = new Set([SPAN_ID, '', ...spans.map(({ spanId }) => spanId)]);
  return spans.filter(({ parentSpanId }) => !ids.has(parentSpanId)).map(({ name }) => name);
};
const doubled = (spans: readonly CollectedSpan[]): string[] =>
  spans
    .filter(({ spanId }, index) => spans.findIndex((span) => span.spanId === spanId) < index)
    .map(({ name }) => name);

describe.each(['http/json', 'http/protobuf'])('traces over %s', (protocol) => {
  let collector: Collector;
  let host: TestHost;
  let model: ModelServer;
  let mcp: McpHttpServer;
  let world: Receiver;
  beforeAll(async () => {
    [collector, model, mcp, world] = await Promise.all([
      Collector.open(),
      ModelServer.open(),
      McpHttpServer.open(),
      Receiver.open(),
    ]);
    scriptModel(model);
    host = await startTestHost('sqlite', undefined, {
      ...telemetryTo(collector, {
        OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
        OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-key=a%20key',
        OTEL_METRICS_EXPORTER: 'otlp',
        // One host pushes all the time, the other one when it stops.
        OTEL_METRIC_EXPORT_INTERVAL: protocol === 'http/json' ? '20' : '600000',
        OTEL_SERVICE_NAME: 'desk',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      }),
      mcpServers: [{ name: 'web', url: mcp.url, args: [], env: {}, secrets: [], timeoutMs: 5_000 }],
      models: [
        {
          ...{ provider: 'acme', kind: 'openai-compatible', baseUrl: model.url, models: ['m'], timeoutMs: 10_000 },
          prices: { m: { input: 1, output: 2 } },
          credentialRef: 'ACME_KEY',
          secret: SECRET,
        },
      ],
    });
  });
  afterAll(async () => {
    await host?.stop();
    for (const each of [collector, model, mcp, world]) each.close();
  });

  const api = (): Api => host.as('reviewer');

  /** A run with an agent that uses a tool, a request, a person, a child and a webhook. */
  async function runAll(headers: Record<string, string>): Promise<string> {
    const asks = node('call', 'core.openwop.http.fetch', {
      config: { url: `${world.url}?token=${CANARY}`, method: 'POST' },
      inputs: { body: fixed({ said: CANARY }) },
    });
    const child = await register(api(), workflow([asks]));
    const agent = node('agent', 'core.agents.run', {
      agent: { agentId: await installAgent(api()) },
      config: { provider: 'acme', model: 'm' },
    });
    const sends = node('child', 'core.subWorkflow', { config: { workflowId: child } });
    const parent = workflow([agent, approval('ask'), sends], line('agent', 'ask', 'child'));
    const rest = { inputs: { userPrompt: CANARY }, metadata: { note: CANARY }, callbackUrl: world.url };
    const answer = await api().post('/v1/runs', { workflowId: await register(api(), parent), ...rest }, headers);
    expect(answer.status, answer.text).toBe(201);
    const { runId } = answer.body;
    await waits(api(), runId);
    expect((await resolve(api(), runId, 'ask', { action: 'accept', comment: CANARY })).status).toBe(200);
    const ended = await api().ended(runId);
    expect(ended.status, JSON.stringify(ended.error)).toBe('completed');
    return runId;
  }

  it('show an agent with a tool, an approval, a child and webhooks as one tree below the span of the caller', async () => {
    const { traceId, headers } = newTrace();
    const runId = await runAll(headers);
    const isWhole = (spans: readonly CollectedSpan[]): boolean =>
      hasRun(runId)(spans) &&
      world.arrivals.filter(({ body }) => body.runId === runId).length > 0 &&
      orphans(spans).length === 0;
    const spans = await collector.trace(traceId, (found) => isWhole(found) && found.some(isDelivery));
    expect(orphans(spans)).toEqual([]);
    expect(doubled(spans)).toEqual([]);
    expect(outline(withoutAppends(spans).filter((span) => !isDelivery(span)))).toEqual([
      'openwop.run',
      '  openwop.node.core.agents.run',
      '    openwop.node.core.agents.run.attempt',
      ...['acme', 'acme', 'mcp'].map((what) => `      openwop.activity.${what}`),
      '  openwop.node.core.approvalGate',
      '    openwop.interrupt',
      '    openwop.node.core.approvalGate.attempt',
      '  openwop.node.core.subWorkflow',
      '    openwop.node.core.subWorkflow.attempt',
      '    openwop.run',
      '      openwop.node.core.openwop.http.fetch',
      '        openwop.node.core.openwop.http.fetch.attempt',
      '          openwop.activity.http',
    ]);
    const run = spans.find(({ parentSpanId }) => parentSpanId === SPAN_ID)!;
    expect(run.attributes).toMatchObject({ 'openwop.run_id': runId, 'openwop.tenant_id': 'alpha' });
    for (const delivery of spans.filter(isDelivery)) expect(delivery.parentSpanId).toBe(run.spanId);
    if (process.env.CAPSTAN_PICTURE) writeFileSync(PICTURE, pictureOf(spans, PICTURE_TITLE));
    const shown = new Set([...readFileSync(PICTURE, 'utf8').matchAll(/>(openwop\.[^<]+)</g)].map(([, name]) => name));
    expect(shown).toEqual(new Set(withoutAppends(spans).map(({ name }) => name)));
  });

  const isDelivery = ({ name }: CollectedSpan): boolean => name === 'openwop.activity.webhook';

  it('carry what the protocol and the conventions ask for', async () => {
    const { traceId, headers } = newTrace();
    const runId = await runAll(headers);
    const spans = await collector.trace(traceId, hasRun(runId));
    const of = (name: string) => spans.filter((span) => span.name === name).map(({ attributes }) => attributes);
    const asked = { 'openwop.node_id': 'agent', 'gen_ai.provider.name': 'acme', 'gen_ai.request.model': 'm' };
    expect(of('openwop.activity.acme')[0]).toMatchObject({
      ...asked,
      'gen_ai.operation.name': 'chat',
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 5,
      'gen_ai.response.finish_reasons': ['tool_calls'],
      'openwop.cost.tokens.input': 10,
      'openwop.cost.usd': 0.00002,
      'openwop.cost.estimated': true,
    });
    expect(of('openwop.activity.mcp')[0]).toMatchObject({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'web.echo',
      'mcp.method.name': 'tools/call',
    });
    expect(of('openwop.activity.http')[0]).toMatchObject({
      'http.request.method': 'POST',
      'http.response.status_code': 204,
      'server.address': '127.0.0.1',
    });
    expect(of('openwop.interrupt')[0]).toMatchObject({
      'openwop.interrupt_kind': 'approval',
      'openwop.interrupt_count': 1,
    });
    const child = of('openwop.run').find((attributes) => attributes['openwop.parent.run_id'] === runId)!;
    expect(child).toMatchObject({
      'openwop.parent.node_id': 'child',
      'openwop.parent.workflow_id': expect.any(String),
    });
    expect(spans[0]!.resource).toMatchObject({
      'service.name': 'desk',
      'service.version': expect.any(String),
      'deployment.environment.name': 'test',
    });
    const sentTraces = collector.exports.find(({ path }) => path === '/v1/traces');
    expect(sentTraces).toMatchObject({ headers: { 'x-collector-key': 'a key' } });
  });

  it('hold nothing that a caller, a node, a model or a tool said, and no secret', async () => {
    const { traceId, headers } = newTrace();
    await collector.trace(traceId, hasRun(await runAll(headers)));
    const boom = node('boom', 'core.openwop.http.fetch', {
      config: { url: world.url, method: 'POST', failOn: ['5xx'] },
      inputs: { body: fixed({ said: CANARY }) },
    });
    world.say(() => 500);
    const failed = newTrace();
    const body = { workflowId: await register(api(), workflow([boom])), inputs: { [CANARY]: 1 }, tags: [CANARY] };
    const { body: started } = await api().post('/v1/runs', body, failed.headers);
    const spans = await collector.trace(failed.traceId, hasRun(started.runId));
    world.say(() => 204);
    expect(only(spans, 'openwop.run')).toMatchObject({
      status: 2,
      message: '',
      attributes: { 'error.type': 'http_error' },
    });
    expect(only(spans, 'openwop.activity.http')).toMatchObject({
      status: 2,
      attributes: { 'error.type': 'http_error' },
    });
    const sent = Buffer.concat(collector.exports.map(({ body }) => body)).toString('latin1');
    expect(sent).toContain(started.runId);
    expect(sent).not.toContain(CANARY);
    expect(JSON.stringify(collector.spans)).not.toContain(CANARY);
  });

  it('go out with the spans that they show', async () => {
    const { traceId, headers } = newTrace();
    const runId = await runAll(headers);
    const spans = await collector.trace(traceId, (found) => hasRun(runId)(found) && found.some(isDelivery));
    const idsOf = (name: string) =>
      spans.filter((span) => span.name === name).map(({ spanId }) => `00-${traceId}-${spanId}-01`);
    expect(
      model
        .asked('m')
        .slice(-2)
        .map(({ headers }) => headers.traceparent),
    ).toEqual(idsOf('openwop.activity.acme'));
    const called = mcp.bodies.filter((each) => each.includes('tools/call')).at(-1)!;
    expect(idsOf('openwop.activity.mcp')).toContain(JSON.parse(called).params._meta.traceparent);
    const arrived = world.arrivals.map(({ headers }) => headers.traceparent);
    for (const name of ['openwop.activity.http', 'openwop.activity.webhook']) {
      expect(arrived).toEqual(expect.arrayContaining(idsOf(name)));
    }
  });

  it('begin with the run if nobody else began them', async () => {
    const runId = await api().run(await register(api(), workflow([node('a')])));
    await api().ended(runId);
    const { spans: shown } = (await api().get(`/v1/runs/${runId}/debug-bundle`)).body;
    const spans = await collector.trace(shown[0].traceId, hasRun(runId));
    expect(only(spans, 'openwop.run').parentSpanId).toBe('');
    const idOf = ({ spanId, parentSpanId, name }: CollectedSpan) => [name, spanId, parentSpanId || null];
    expect(new Set(shown.map(idOf))).toEqual(new Set(withoutAppends(spans).map(idOf)));
  });

  it('show each append to the log, with its last event', async () => {
    const { traceId, headers } = newTrace();
    const workflowId = await register(api(), workflow([approval('ask')]));
    const { runId } = (await api().post('/v1/runs', { workflowId }, headers)).body;
    await waits(api(), runId);
    expect((await resolve(api(), runId, 'ask', { action: 'accept' })).status).toBe(200);
    await api().ended(runId);
    const log = await api().events(runId);
    const spans = await collector.trace(traceId, hasRun(runId));
    const run = only(spans, 'openwop.run');
    const appends = spans.filter(({ name }) => name === 'openwop.event.append');
    const lastEvents = appends.map(({ attributes }) => [
      attributes['openwop.event_seq'],
      attributes['openwop.event_type'],
    ]);
    expect(lastEvents.length).toBeGreaterThan(2);
    expect(lastEvents).toContainEqual([log.length - 1, 'run.completed']);
    for (const [sequence, type] of lastEvents) expect(log[Number(sequence)]!.type).toBe(type);
    for (const { parentSpanId } of appends) expect(parentSpanId).toBe(run.spanId);
  });

  it('reach the code of workers with each attempt', async () => {
    const typeId = `${unique('acme')}.fetchInvoice`;
    const types = '/v1/host/capstan/workers/types';
    const tasks = '/v1/host/capstan/workers/tasks';
    const declared = await host.as('owner').request('PUT', `${types}/${typeId}`, { description: 'Fetches.' });
    expect(declared.status, declared.text).toBe(200);
    const { traceId, headers } = newTrace();
    const workflowId = await register(host.as('owner'), workflow([node('a', typeId)]));
    const more = { ...headers, tracestate: 'vendor=1' };
    const { runId } = (await host.as('owner').post('/v1/runs', { workflowId }, more)).body;
    const claimed = await host.as('owner').post(`${tasks}:claim`, { types: [typeId], waitSeconds: 20 });
    const [task] = claimed.body.tasks;
    const report = { epoch: task.epoch, outputs: {} };
    expect((await host.as('owner').post(`${tasks}/${task.taskId}:complete`, report)).status).toBe(204);
    await host.as('owner').ended(runId);
    const spans = await collector.trace(traceId, hasRun(runId));
    const attempt = only(spans, `openwop.node.${typeId}.attempt`);
    expect(task).toMatchObject({ traceparent: `00-${traceId}-${attempt.spanId}-01`, tracestate: 'vendor=1' });
  });

  it('are linked where a run was forked from another', async () => {
    const source = await api().run(await register(api(), workflow([node('a'), node('b')], line('a', 'b'))));
    await api().ended(source);
    const { spans: shown } = (await api().get(`/v1/runs/${source}/debug-bundle`)).body;
    const { traceId, headers } = newTrace();
    const forked = await api().post(`/v1/runs/${source}:fork`, { mode: 'branch', fromSeq: 4 }, headers);
    expect(forked.status, forked.text).toBe(201);
    const spans = await collector.trace(traceId, hasRun(forked.body.runId));
    const run = only(spans, 'openwop.run');
    expect(run).toMatchObject({
      parentSpanId: SPAN_ID,
      links: [{ traceId: shown[0].traceId, spanId: shown[0].spanId }],
      attributes: {
        'openwop.replay.source_run_id': source,
        'openwop.replay.from_seq': 4,
        'openwop.replay.mode': 'branch',
      },
    });
    const nodes = spans.filter(({ name }) => name === 'openwop.node.core.noop');
    expect(nodes.map(({ attributes }) => attributes['openwop.node_id'])).toEqual(['b']);
  });

  it('are not recorded if the caller does not record them', async () => {
    const quiet = newTrace('00');
    await runAll(quiet.headers);
    const loud = newTrace();
    await collector.trace(loud.traceId, hasRun(await runAll(loud.headers)));
    expect(collector.spans.filter(({ traceId }) => traceId === quiet.traceId)).toEqual([]);
  });

  it('are advertised', async () => {
    const { observability } = (await api().get('/.well-known/openwop')).body;
    expect(observability.otel.exportProtocols).toEqual(expect.arrayContaining(['http/json', 'http/protobuf']));
    // What it would promise, the specification and the public suite say differently.
    expect(observability).not.toHaveProperty('metrics');
  });

  /** The series of a metric that the last push had. */
  const series = (name: string, attributes: Record<string, unknown> = {}) =>
    collector.metrics.filter(
      (each) =>
        each.name === name && Object.entries(attributes).every(([key, value]) => each.attributes[key] === value),
    );

  it('come with the metrics of the protocol, by tenant and workflow, and those of /metrics', async () => {
    const runId = await runAll(newTrace('00').headers);
    const { workflowId } = (await api().get(`/v1/runs/${runId}`)).body;
    const ofRun = { 'openwop.workflow_id': workflowId, 'openwop.tenant_id': 'alpha' };
    const { text } = await host.anonymous.get('/metrics');
    if (protocol === 'http/json') {
      await until(
        async () => series('openwop.run.completed', ofRun),
        (found) => found.length === 1,
      );
      // The store is asked every few seconds: the last answer may be from when the run was due.
      await until(
        async () => series('openwop.queue.depth'),
        ([depth]) => depth?.value === 0,
      );
    }
    await host.stop();
    const pushed = collector.exports.findLast(({ path }) => path === '/v1/metrics');
    expect(pushed).toMatchObject({ headers: { 'x-collector-key': 'a key' } });
    expect(series('openwop.run.created', ofRun)).toMatchObject([{ kind: 'counter', value: 1 }]);
    expect(series('openwop.run.completed', { ...ofRun, 'openwop.run_status': 'completed' })).toHaveLength(1);
    const [duration] = series('openwop.run.duration', ofRun);
    expect(duration).toMatchObject({ kind: 'histogram', unit: 's', value: 1, sum: expect.any(Number) });
    expect(duration!.counts!.reduce((sum, each) => sum + each)).toBe(1);
    expect(duration!.bounds).toEqual([0.5, 1, 2.5, 5, 10, 30, 60, 300, 600, 1_800, 3_600]);
    expect(series('openwop.run.backlog', ofRun)).toMatchObject([{ kind: 'histogram', value: 1 }]);
    expect(series('openwop.queue.depth', { 'openwop.tenant_id': 'all' })).toMatchObject([{ kind: 'gauge', value: 0 }]);
    expect(series('openwop.node.completed', { 'openwop.node_type': 'core.agents.run' })).toHaveLength(1);
    expect(series('openwop.activity.invocations', { provider: 'acme' })[0]!.value).toBeGreaterThan(1);
    expect(series('openwop.activity.tokens', { provider: 'acme', direction: 'input' })[0]!.value).toBeGreaterThan(19);
    expect(series('openwop.cost.usd', { provider: 'acme' })).toMatchObject([{ unit: 'USD' }]);
    const asked = { 'openwop.interrupt_kind': 'approval' };
    const [requested] = series('openwop.interrupt.requested', asked);
    const answered = series('openwop.interrupt.duration', { ...asked, 'openwop.run_status': 'resolved' });
    expect(answered).toMatchObject([{ value: requested!.value }]);
    // What Node measures of itself, open requests for example, may be nothing at the next reading.
    const names = [...text.matchAll(/^# TYPE (?!\w*_nodejs_(?:eventloop_lag|active_))(\w+) \w+$/gm)].map(
      ([, name = '']) => name,
    );
    expect(names.filter((name) => series(name).length === 0 && text.includes(`\n${name}`))).toEqual([]);
    const [, shown] = /^capstan_runs_finished_total\{status="completed"\} (\d+)$/m.exec(text)!;
    const [finished] = series('capstan_runs_finished_total', { status: 'completed' });
    expect(finished!.value).toBe(Number(shown));
    expect(finished!.resource).toMatchObject({
      'service.name': 'desk',
      'service.instance.id': expect.stringMatching(/^host-/),
    });
    const sent = JSON.stringify(collector.metrics);
    expect(sent).not.toContain(CANARY);
    expect(sent).not.toMatch(/run-[0-9a-z]{22}/);
  });
});

it('sends metrics without traces, and hands on the trace of its caller as it is', async () => {
  const [collector, world] = await Promise.all([Collector.open(), Receiver.open()]);
  const settings = telemetryTo(collector, { OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'otlp' });
  const host = await startTestHost('sqlite', undefined, settings);
  const { traceId, headers } = newTrace();
  const asks = node('call', 'core.openwop.http.fetch', {
    config: { url: world.url, method: 'POST' },
    inputs: { body: fixed({}) },
  });
  const workflowId = await register(host.as('editor'), workflow([asks]));
  const { body } = await host.as('editor').post('/v1/runs', { workflowId }, headers);
  await host.as('editor').ended(body.runId);
  await host.stop();
  expect(world.arrivals[0]!.headers.traceparent).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`));
  expect(collector.exports.map(({ path }) => path)).toEqual(['/v1/metrics']);
  expect(collector.metrics.map(({ name }) => name)).toContain('openwop.activity.duration');
  for (const each of [collector, world]) each.close();
});

describe('a trace', () => {
  const { start, kill, stop, newFolder } = killableHosts();
  let collector: Collector;
  beforeAll(async () => {
    collector = await Collector.open();
  });
  afterAll(() => collector.close());

  it('goes on after the host was killed, and nothing of it is missing', async () => {
    // So late that the host that is killed has sent nothing of what it did.
    const environment = {
      CAPSTAN_DATA: newFolder(),
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_SAMPLER: 'always_on',
      OTEL_BSP_SCHEDULE_DELAY: '600000',
    };
    const before = await start(environment);
    const { traceId, headers } = newTrace();
    const world = await Receiver.open();
    const call = node('call', 'core.openwop.http.fetch', {
      config: { url: world.url, method: 'POST' },
      inputs: { body: fixed({}) },
    });
    const child = await register(before.as('editor'), workflow([node('inner')]));
    const nodes = [
      node('a'),
      call,
      approval('ask'),
      node('child', 'core.subWorkflow', { config: { workflowId: child } }),
    ];
    const workflowId = await register(before.as('editor'), workflow(nodes, line('a', 'call', 'ask', 'child')));
    world.say(() => undefined);
    const { runId } = (await before.as('editor').post('/v1/runs', { workflowId }, headers)).body;
    await world.count(1);
    await kill(before);
    world.say(() => 204);
    expect(collector.spans).toEqual([]);
    const after = await start(environment);
    await waits(after.as('editor'), runId);
    expect((await resolve(after.as('editor'), runId, 'ask', { action: 'accept' })).status).toBe(200);
    await after.as('editor').ended(runId);
    const { spans: shown } = (await after.as('editor').get(`/v1/runs/${runId}/debug-bundle`)).body;
    await stop(after);
    world.close();
    const spans = await collector.trace(traceId, hasRun(runId));
    expect(orphans(spans)).toEqual([]);
    expect(doubled(spans)).toEqual([]);
    const sent = spans.map(({ spanId }) => spanId);
    expect(sent).toEqual(expect.arrayContaining(shown.map(({ spanId }: Answer['body']) => spanId)));
  });

  it('is whole although two hosts took part in the run', async () => {
    const settings = telemetryTo(collector);
    const first = await startTestHost('postgres', inject('postgresUrl'), settings);
    const second = await first.another();
    const { traceId, headers } = newTrace();
    const nodes = [node('a'), approval('ask'), node('b'), approval('again'), node('c')];
    const workflowId = await register(first.as('editor'), workflow(nodes, line('a', 'ask', 'b', 'again', 'c')));
    const { runId } = (await first.as('editor').post('/v1/runs', { workflowId }, headers)).body;
    for (const [host, gate] of [[second, 'ask'] as const, [first, 'again'] as const]) {
      await host.as('editor').until(runId, ({ nodeStates }) => nodeStates[gate]?.status === 'suspended');
      expect((await resolve(host.as('reviewer'), runId, gate, { action: 'accept' })).status).toBe(200);
    }
    await first.as('editor').ended(runId);
    const { spans: shown } = (await first.as('editor').get(`/v1/runs/${runId}/debug-bundle`)).body;
    await second.stop();
    await first.stop();
    const spans = await collector.trace(traceId, hasRun(runId));
    const idOf = ({ spanId }: { spanId: string }) => spanId;
    expect(withoutAppends(spans).map(idOf).sort()).toEqual(shown.map(idOf).sort());
  });

  it('is not sent if the operator records none', async () => {
    const settings = telemetryTo(collector, { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' });
    const host = await startTestHost('sqlite', undefined, settings);
    const { traceId, headers } = newTrace();
    const { body } = await host.as('editor').post('/v1/runs', { workflowId: 'conformance-noop' }, headers);
    await host.as('editor').ended(body.runId);
    const before = collector.exports.length;
    await host.stop();
    expect(collector.exports).toHaveLength(before);
    expect(collector.spans.filter((span) => span.traceId === traceId)).toEqual([]);
  });

  it('is lost if the collector is away; runs are not, and do not wait', async () => {
    const away = await Collector.open();
    const settings = telemetryTo(away, { OTEL_EXPORTER_OTLP_TIMEOUT: '50' });
    away.close();
    const host = await startTestHost('sqlite', undefined, settings);
    const ids = await Promise.all(Array.from({ length: 20 }, () => host.as('editor').run('conformance-multi-node')));
    const ended = await Promise.all(ids.map((runId) => host.as('editor').ended(runId)));
    expect(ended.map(({ status }) => status)).toEqual(ids.map(() => 'completed'));
    await host.stop();
  });

  it('is not offered by a host without a collector', async () => {
    const host = await startTestHost('sqlite', undefined);
    const { body } = await host.as('editor').get('/.well-known/openwop');
    await host.stop();
    expect(body).not.toHaveProperty('observability');
  });
});
