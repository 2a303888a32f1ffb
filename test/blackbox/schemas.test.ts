import { describe, expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import {
  edge,
  expression,
  fixed,
  line,
  node,
  register,
  variable,
  WORKFLOWS,
  workflow,
} from '../support/definitions.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onOneStore } from '../support/stores.ts';

/**
 * Everything the host really sends is held against the protocol's published schemas, or against the project's own
 * where those are not at hand.
 */
const schemas = loadSchemas();

/** Inputs that every fixture can be started with; small delays keep the test short. */
const INPUTS = { payload: { deep: [{ a: 1 }, null, true] }, nonce: 'n-1', delayMs: 20 };

/** Definitions that bring about the event types which no fixture does. */
const EXTRA = {
  retries: workflow([node('flaky', 'core.fail', { settings: { retry: { maxRetries: 2, delayMs: 1 } } })]),
  skips: workflow(
    [node('a', 'core.identity', { inputs: { n: fixed(1) } }), node('b'), node('off', 'core.noop', { disabled: true })],
    [edge('a', 'b', { condition: { type: 'equals', left: 'n', right: 2 } })],
  ),
  warnings: workflow(
    [node('a'), node('b')],
    [edge('a', 'b', { condition: { type: 'expression', expression: 'variables.absent > 3' } })],
  ),
  state: workflow(
    [
      node('set', 'core.setVariable', { config: { name: 'count', value: 1 } }),
      node('again', 'core.setVariable', {
        config: { name: 'count' },
        inputs: { value: expression('variables.count + 1') },
      }),
      node('write', 'core.channelWrite', { config: { channelName: 'notes', reducer: 'append', value: { text: 'x' } } }),
      node('timed', 'core.channelWrite', { config: { channelName: 'recent', reducer: 'append', value: 1 } }),
    ],
    line('set', 'again', 'write', 'timed'),
    { channels: { notes: { reducer: 'append' }, recent: { reducer: 'append', ttlMs: 60_000 } } },
  ),
  masked: workflow(
    [
      node('show', 'core.identity', { inputs: { note: variable('note') }, outputSensitivity: { note: true } }),
      node('change', 'core.setVariable', {
        config: { name: 'note' },
        inputs: { value: expression('variables.note + "!"') },
      }),
    ],
    line('show', 'change'),
    { variables: [{ name: 'note', type: 'string', defaultValue: 'for few', sensitive: true }] },
  ),
  artifacts: workflow([
    node('make', 'core.identity', { inputs: { text: fixed('a report') }, artifactType: 'report.markdown' }),
  ]),
  agents: workflow([
    node('pinned', 'core.identity', { agent: { agentId: 'core.openwop.agents.sample', name: 'Sample' } }),
  ]),
  longIds: workflow([node('n'.repeat(300))]),
};

/** Runs of everything, in every way a run can end. */
async function runEverything(api: Api, test: Api): Promise<{ api: Api; runId: string }[]> {
  const { fixtures } = (await api.get('/.well-known/openwop')).body;
  const runs: { api: Api; runId: string }[] = [];
  const start = async (by: Api, workflowId: string, rest: object): Promise<string> => {
    const runId = await by.run(workflowId, rest);
    runs.push({ api: by, runId });
    return runId;
  };
  for (const id of fixtures) await start(test, id, { inputs: INPUTS, tags: ['t'], metadata: { m: [1, { x: null }] } });
  for (const definition of Object.values(EXTRA)) await start(api, await register(api, definition), { inputs: {} });
  await start(test, 'conformance-stream-text', { configurable: { mockProvider: { id: 'stream-text' } } });
  const toolCalls = [{ id: 'c1', name: 'look', arguments: { at: 'it' } }];
  await start(test, 'conformance-stream-text', {
    configurable: { mockProvider: { id: 'tool-calls', config: { toolCalls } } },
  });
  await start(test, 'conformance-stream-text', {
    configurable: { mockProvider: { id: 'error', config: { code: 'x' } } },
  });
  await start(test, 'conformance-stream-text', { configurable: { mockProvider: { id: 'usage-only' } } });
  await start(api, 'conformance-cap-breach', { configurable: { recursionLimit: 3 } });
  await start(api, 'conformance-run-duration-breach', { configurable: { runTimeoutMs: 30 } });
  const paused = await start(api, 'conformance-cancellable', {});
  await api.post(`/v1/runs/${paused}:pause`, { reason: 'lunch', drainPolicy: 'immediate' });
  await api.post(`/v1/runs/${paused}:resume`, { reason: 'back' });
  await api.post(`/v1/runs/${paused}/cancel`, { reason: 'enough' });
  const child = await start(api, 'conformance-dispatch-cancellable-child', {});
  await api.post(`/v1/runs/${child}/cancel`);
  for (const run of runs) {
    const { status } = await run.api.until(run.runId, ({ status }) => status !== 'running');
    // What waits for somebody has said what it has to say; cancelling it closes its interrupt.
    if (status.startsWith('waiting-')) await run.api.post(`/v1/runs/${run.runId}/cancel`);
    await run.api.ended(run.runId);
  }
  return runs;
}

onOneStore(`what the host sends, by the schemas of ${schemas.from}`, (host) => {
  let everything: Promise<{ api: Api; runId: string }[]> | undefined;
  const runs = (): Promise<{ api: Api; runId: string }[]> => {
    everything ??= runEverything(host().as('editor'), host().as('test'));
    return everything;
  };
  const allEvents = async (): Promise<Answer['body'][]> =>
    (await Promise.all((await runs()).map(({ api, runId }) => api.events(runId)))).flat();

  it('discovery fits', async () => {
    expect(schemas.discovery((await host().anonymous.get('/.well-known/openwop')).body)).toEqual([]);
  });

  it('every workflow definition fits, fixtures and registered ones', async () => {
    const { fixtures } = (await host().anonymous.get('/.well-known/openwop')).body;
    await runs();
    const { items } = (await host().as('editor').get(`${WORKFLOWS}?limit=200`)).body;
    const ids = new Set<string>([...fixtures, ...items.map(({ id }: { id: string }) => id)]);
    for (const id of ids) {
      const { body } = await host().as('editor').get(`/v1/workflows/${id}`);
      expect(schemas.workflow(body), id).toEqual([]);
    }
  });

  it('every snapshot fits, of runs that completed, failed and were cancelled', async () => {
    const seen = new Set<string>();
    for (const { api, runId } of await runs()) {
      const { body } = await api.get(`/v1/runs/${runId}`);
      expect(schemas.snapshot(body), JSON.stringify(body)).toEqual([]);
      seen.add(body.status);
    }
    expect([...seen].sort()).toEqual(['cancelled', 'completed', 'failed']);
  });

  it('every snapshot of a values stream fits', async () => {
    for (const { api, runId } of await runs()) {
      const { frames } = await api.frames(`/v1/runs/${runId}/events?streamMode=values`);
      expect(frames.length).toBeGreaterThan(0);
      for (const { data } of frames) expect(schemas.snapshot(JSON.parse(data!)), data).toEqual([]);
    }
  });

  it('snapshots of running and paused runs fit', async () => {
    const api = host().as('editor');
    const runId = await api.run('conformance-cancellable');
    expect(schemas.snapshot((await api.get(`/v1/runs/${runId}`)).body)).toEqual([]);
    await api.post(`/v1/runs/${runId}:pause`, { drainPolicy: 'immediate' });
    const paused = (await api.get(`/v1/runs/${runId}`)).body;
    expect(paused.status).toBe('paused');
    expect(schemas.snapshot(paused)).toEqual([]);
    await api.post(`/v1/runs/${runId}/cancel`);
  });

  it('every event envelope fits', async () => {
    for (const event of await allEvents()) expect(schemas.event(event), JSON.stringify(event)).toEqual([]);
  });

  describe('the payload of', () => {
    const types = [
      'run.started',
      'run.completed',
      'run.failed',
      'run.cancelled',
      'run.paused',
      'run.resumed',
      'node.started',
      'node.completed',
      'node.failed',
      'node.retried',
      'node.skipped',
      'node.cancelled',
      'node.dispatched',
      'variable.changed',
      'channel.written',
      'output.chunk',
      'log.appended',
      'cap.breached',
    ];

    const expectFit = async (type: string): Promise<void> => {
      const check = schemas.payload(type)!;
      const events = (await allEvents()).filter((event) => event.type === type);
      expect(events.length).toBeGreaterThan(0);
      for (const { payload } of events) expect(check(asPublished(payload)), JSON.stringify(payload)).toEqual([]);
    };

    /** The protocol declares the reducer `message`, and its schema of `channel.written` leaves it out of the names. */
    const asPublished = (payload: Answer['body']): unknown =>
      payload.reducer === 'message' ? { ...payload, reducer: 'append' } : payload;

    it.each(types)('%s fits', expectFit);

    it('any other type fits, where the catalogue has it', async () => {
      const others = (await allEvents()).filter(({ type }) => !types.includes(type) && type !== 'artifact.created');
      for (const { type, payload } of others) expect(schemas.payload(type)?.(payload) ?? [], type).toEqual([]);
    });

    it('artifact.created fits', () => expectFit('artifact.created'));
  });

  it('every refusal fits', async () => {
    const api = host().as('editor');
    const finished = (await runs())[0]!;
    const refusals = await Promise.all([
      host().anonymous.get('/v1/runs/absent'),
      host().as('nothing').get('/v1/runs/absent'),
      api.get('/v1/runs/absent'),
      api.get('/v1/nowhere'),
      api.get('/nowhere'),
      api.request('PATCH', '/v1/runs'),
      api.post('/v1/runs', {}),
      api.request('POST', '/v1/runs', '{"a"', { 'content-type': 'application/json' }),
      api.request('POST', '/v1/runs', 'text', { 'content-type': 'text/plain' }),
      api.post('/v1/runs', { workflowId: 'conformance-noop', configurable: { mockProvider: { id: 'stream-text' } } }),
      api.post('/v1/runs', { workflowId: 'conformance-noop', residency: {} }),
      api.post('/v1/runs', { mode: 'eval' }),
      api.post('/v1/runs:bulk-cancel', { runIds: [] }),
      api.post(WORKFLOWS, { ...EXTRA.skips, edges: [edge('a', 'nowhere')] }),
      api.post(WORKFLOWS, workflow([node('d', 'core.conversationGate')])),
      finished.api.post(`/v1/runs/${finished.runId}:pause`),
      finished.api.get(`/v1/runs/${finished.runId}/events?streamMode=all`),
      finished.api.get(`/v1/runs/${finished.runId}/events?bufferMs=-1`),
      finished.api.get(`/v1/runs/${finished.runId}/artifacts/none`),
    ]);
    for (const { status, body, text } of refusals) {
      expect(status, text).toBeGreaterThanOrEqual(400);
      expect(schemas.envelope(body), text).toEqual([]);
    }
  });
});
