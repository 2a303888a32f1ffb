import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { fixed, line, node, register, workflow } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { McpHttpServer } from '../support/mcp-http.ts';
import { ModelServer } from '../support/model-server.ts';
import { type Arrival, Receiver } from '../support/receiver.ts';
import { storesFor } from '../support/stores.ts';

/** durability.md 8.1: a trace context comes in with a request, goes out with its answer, and through with the run. */

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';
const TRACED = { traceparent: `00-${TRACE_ID}-${SPAN_ID}-01`, tracestate: 'vendor=opaque' };
const OF_THE_TRACE = expect.stringMatching(new RegExp(`^00-${TRACE_ID}-(?!${SPAN_ID})[0-9a-f]{16}-01$`));
const PLAIN = { args: [], env: {}, secrets: [], timeoutMs: 5_000 };
const MALFORMED = [
  'nonsense',
  `00-${'0'.repeat(32)}-${SPAN_ID}-01`,
  `00-${TRACE_ID}-${'0'.repeat(16)}-01`,
  `ff-${TRACE_ID}-${SPAN_ID}-01`,
];

describe.each(storesFor('a trace context'))('a trace context, on %s', (kind) => {
  let host: TestHost;
  let world: Receiver;
  let mcp: McpHttpServer;
  let model: ModelServer;
  beforeAll(async () => {
    [world, mcp, model] = await Promise.all([Receiver.open(), McpHttpServer.open(), ModelServer.open()]);
    const settings = { provider: 'acme', kind: 'openai-compatible', baseUrl: model.url, models: ['m'] } as const;
    host = await startTestHost(kind, inject('postgresUrl'), {
      mcpServers: [{ ...PLAIN, name: 'web', url: mcp.url }],
      models: [{ ...settings, prices: {}, timeoutMs: 10_000 }],
    });
  });
  afterAll(async () => {
    await host?.stop();
    world.close();
    mcp.close();
    model.close();
  });
  beforeEach(() => {
    world.arrivals.splice(0);
  });

  const api = (): Api => host.as('editor');
  const calls = (id = 'ask') =>
    node(id, 'core.openwop.http.fetch', {
      config: { url: world.url, method: 'POST' },
      inputs: { body: fixed({}) },
    });
  async function ran(workflowId: string, headers: Record<string, string> = TRACED, rest: object = {}): Promise<string> {
    const answer = await api().post('/v1/runs', { workflowId, ...rest }, headers);
    expect(answer.status, answer.text).toBe(201);
    expect(await api().ended(answer.body.runId)).toMatchObject({ status: 'completed' });
    return answer.body.runId;
  }
  const contextOf = ({ headers }: Arrival) => ({ traceparent: headers.traceparent, tracestate: headers.tracestate });
  const WANTED = { traceparent: OF_THE_TRACE, tracestate: 'vendor=opaque' };

  it('comes back with every answer, under a span of the host', async () => {
    const runId = await ran('conformance-noop');
    for (const path of [
      `/v1/runs/${runId}`,
      `/v1/runs/${runId}/events`,
      '/v1/runs/run-absent',
      '/.well-known/openwop',
    ]) {
      const { headers } = await api().get(path, TRACED);
      expect(headers.get('traceparent'), path).toEqual(OF_THE_TRACE);
      expect(headers.get('tracestate'), path).toBe('vendor=opaque');
    }
    expect((await api().get(`/v1/runs/${runId}`)).headers.get('traceparent')).toBeNull();
  });

  it.each(MALFORMED)('that is malformed starts no trace: %s', async (traceparent) => {
    const headers = { traceparent, tracestate: 'vendor=opaque' };
    expect((await api().get('/v1/runs/run-absent', headers)).headers.get('traceparent')).toBeNull();
    await ran(await register(api(), workflow([calls()])), headers);
    expect(world.arrivals.map(contextOf)).toEqual([{ traceparent: undefined, tracestate: undefined }]);
  });

  it('goes out with the requests of nodes, of a child too', async () => {
    const child = await register(api(), workflow([calls('inner')]));
    const sends = node('child', 'core.subWorkflow', { config: { workflowId: child } });
    await ran(await register(api(), workflow([calls(), sends], line('ask', 'child'))));
    expect(world.arrivals.map(contextOf)).toEqual([WANTED, WANTED]);
    const spans = new Set(world.arrivals.map(({ headers }) => headers.traceparent));
    expect(spans.size).toBe(2);
  });

  it('goes out with deliveries', async () => {
    const made = await api().post('/v1/webhooks', { url: world.url, events: ['run.completed'] });
    const runId = await ran('conformance-noop', TRACED, { callbackUrl: world.url });
    await world.count(2);
    await api().request('DELETE', `/v1/webhooks/${made.body.webhookId}`);
    const delivered = world.arrivals.filter(({ body }) => body.runId === runId);
    expect(delivered.map(contextOf)).toEqual([WANTED, WANTED]);
  });

  it('goes out with the question to a model', async () => {
    model.on('m', (_asked, speech) => speech.text('Hello.').end());
    const asks = node('ask', 'core.ai.chatCompletion', {
      config: { provider: 'acme', model: 'm' },
      inputs: { messages: fixed([{ role: 'user', content: 'Hello?' }]) },
    });
    await ran(await register(api(), workflow([asks])));
    expect(model.asked('m').at(-1)?.headers).toMatchObject(WANTED);
  });

  it('goes out with calls of tools, where MCP has a place for it', async () => {
    const calling = node('call', 'core.openwop.mcp.invoke-tool', {
      config: { serverId: 'web', toolName: 'echo' },
      inputs: { args: fixed({ text: 'hello' }) },
    });
    await ran(await register(api(), workflow([calling])));
    const asked = mcp.bodies.filter((body) => body.includes('tools/call')).map((body) => JSON.parse(body));
    expect(asked.at(-1).params._meta).toMatchObject(WANTED);
  });

  it('is the trace of the spans in a bundle, under the span of the caller', async () => {
    const runId = await ran('conformance-noop');
    const { spans } = (await api().get(`/v1/runs/${runId}/debug-bundle`)).body;
    expect(spans.map(({ traceId }: Answer['body']) => traceId)).toEqual(spans.map(() => TRACE_ID));
    expect(spans[0]).toMatchObject({ name: 'openwop.run', parentSpanId: SPAN_ID });
  });

  it('lets nobody in', async () => {
    expect((await host.anonymous.get('/v1/runs/run-absent', TRACED)).status).toBe(401);
  });
});
