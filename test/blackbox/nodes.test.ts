import { describe, expect, inject, it } from 'vitest';
import type { WorkflowNode } from '../../src/protocol/running/workflows.ts';
import type { Answer, Api } from '../support/api.ts';
import { freshFolder, migratedDatabase } from '../support/database.ts';
import { expression, fixed, line, node, register, unique, variable, workflow } from '../support/definitions.ts';
import type { TestHost } from '../support/host.ts';
import { spawnHost } from '../support/process.ts';
import { Receiver } from '../support/receiver.ts';
import { onEachStore, onOneStore, storesFor } from '../support/stores.ts';

type Body = Answer['body'];

const FOR_EACH = 'vendor.capstan.flow.for-each';

/** Leaves a value where a parent looks for it. */
const setResult = (text: string): WorkflowNode =>
  node('set', 'core.setVariable', { config: { name: 'result' }, inputs: { value: expression(text) } });

/** What a test says to the host again and again. */
function speaksTo(host: () => TestHost) {
  const api = (): Api => host().as('editor');
  const ended = async (workflowId: string, inputs: object = {}): Promise<Body> =>
    api().ended(await api().run(workflowId, { inputs }));
  const replayed = async (runId: string): Promise<Body> => {
    const fork = await api().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq: 0 });
    expect(fork.status, fork.text).toBe(201);
    return api().ended(fork.body.runId);
  };
  const shape = async (runId: string): Promise<object[]> =>
    (await api().events(runId)).map(({ type, nodeId, payload }) => ({ type, nodeId, payload }));
  return { api, ended, replayed, shape };
}

onOneStore('nodes', (host) => {
  const { api, ended, replayed, shape } = speaksTo(host);

  it('that work on data are put together to a report, which a replay repeats', async () => {
    const report = await register(
      api(),
      workflow(
        [
          node('parse', 'core.openwop.data.csv-parse', { inputs: { text: variable('csv') } }),
          node('total', 'vendor.capstan.data.map', {
            config: {
              expression: '{"sku": item.sku, "team": item.team, "total": double(item.price) * double(item.count)}',
            },
            inputs: { array: { type: 'connection', nodeId: 'parse', outputKey: 'rows' } },
          }),
          node('big', 'vendor.capstan.data.filter', {
            config: { expression: 'item.total >= inputs.least' },
            inputs: { array: { type: 'connection', nodeId: 'total', outputKey: 'array' }, least: fixed(5) },
          }),
          node('teams', 'core.openwop.data.array-group-by', {
            config: { keyPath: 'team', aggregations: [{ outputKey: 'total', op: 'sum', path: 'total' }] },
            inputs: { array: { type: 'connection', nodeId: 'big', outputKey: 'array' } },
          }),
          node('check', 'core.openwop.data.json-schema-validate', {
            inputs: {
              value: { type: 'connection', nodeId: 'teams', outputKey: 'groups' },
              schema: fixed({ type: 'array', minItems: 1 }),
            },
          }),
        ],
        line('parse', 'total', 'big', 'teams', 'check'),
        { variables: [{ name: 'csv', type: 'string', required: true }] },
      ),
    );
    const csv = 'sku,team,price,count\na,north,2.5,4\nb,south,1,1\nc,north,"10",2\n';
    const run = await ended(report, { csv });
    expect(run).toMatchObject({ status: 'completed' });
    expect(run.nodeStates.teams.outputs).toEqual({ groups: [{ key: 'north', count: 2, total: 30 }] });
    expect(run.nodeStates.check.outputs).toEqual({ valid: true, errors: [] });
    expect(await shape((await replayed(run.runId)).runId)).toEqual(await shape(run.runId));
  });

  it.each([
    ['core.approvalGate', {}],
    ['core.clarificationGate', { questions: [{ id: 'size', question: 'Which size?' }] }],
    ['core.interrupt', { kind: 'external-event', data: { eventType: 'payment', correlation: {} } }],
  ])('wait for somebody no longer than a year: %s', async (typeId, config) => {
    const open = (timeoutMs: number) =>
      api().post('/v1/host/capstan/workflows', workflow([node('a', typeId, { config: { ...config, timeoutMs } })]));
    expect((await open(31_536_000_001)).body).toMatchObject({ error: 'validation_error' });
    const { status, body } = await open(31_536_000_000);
    expect(status).toBe(201);
    const runId = await api().run(body.id);
    const waiting = await api().until(runId, ({ status }) => status.startsWith('waiting'));
    expect(waiting.interrupt).toMatchObject({ nodeId: 'a' });
  });

  it('refuse an expression that is none when the definition is registered, and say where', async () => {
    const definition = workflow([node('map', 'vendor.capstan.data.map', { config: { expression: 'item +' } })]);
    const answer = await api().post('/v1/host/capstan/workflows', definition);
    expect(answer.status).toBe(422);
    expect(answer.text).toContain('nodes[0].config.expression');
  });

  const fetches = (config: object, more: Partial<WorkflowNode> = {}): Promise<string> =>
    register(
      api(),
      workflow(
        [node('ask', 'core.openwop.http.fetch', { config: { ...config }, ...more }), node('after')],
        line('ask', 'after'),
      ),
    );

  it('ask others over HTTP, once, and a replay asks nobody', async () => {
    const { body } = await host().anonymous.get('/.well-known/openwop');
    expect(body.httpClient).toMatchObject({ supported: true, ssrfGuard: true, maxResponseBodyBytes: 1_048_576 });
    const receiver = await Receiver.open();
    receiver.say((_arrival, response) => {
      response.writeHead(201, { 'content-type': 'application/json', 'set-cookie': 'a=b', etag: '"7"' });
      response.end('{"id":7}');
      return undefined;
    });
    const run = await ended(
      await fetches(
        { url: `${receiver.url}/{{ place }}`, method: 'POST', headers: { 'X-Kind': 'test' } },
        { inputs: { body: fixed({ hello: 'world' }), variables: fixed({ place: 'a b' }) } },
      ),
    );
    const { outputs } = run.nodeStates.ask;
    expect(outputs).toMatchObject({ status: 201, body: { id: 7 }, headers: { etag: '"7"' }, attempts: 1 });
    expect(outputs.headers).not.toHaveProperty('set-cookie');
    expect(receiver.arrivals).toMatchObject([
      { path: '/hook/a%20b', body: { hello: 'world' }, headers: { 'x-kind': 'test' } },
    ]);
    expect(receiver.arrivals[0]!.headers['idempotency-key']).toBe(outputs.idempotencyKey);
    const again = await replayed(run.runId);
    expect(again.nodeStates.ask.outputs).toEqual(outputs);
    expect(receiver.arrivals).toHaveLength(1);
    receiver.close();
  });

  it('ask again under one key while there is trouble, and say what the trouble was when they give up', async () => {
    const receiver = await Receiver.open();
    receiver.say(() => (receiver.arrivals.length < 3 ? 503 : 200));
    const settings = { retry: { maxRetries: 3, delayMs: 5 } };
    const config = { url: receiver.url, method: 'POST' };
    const inputs = { body: fixed({}) };
    const run = await ended(await fetches(config, { settings, inputs }));
    expect(run.nodeStates.ask.outputs).toMatchObject({ status: 200, body: null, attempts: 3 });
    expect(new Set(receiver.arrivals.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
    receiver.say(() => 500);
    expect(await ended(await fetches(config, { inputs }))).toMatchObject({
      status: 'failed',
      error: { code: 'http_error', details: { status: 500 } },
    });
    const tolerant = await ended(await fetches({ ...config, failOn: [] }, { inputs }));
    expect(tolerant.nodeStates.ask.outputs).toMatchObject({ status: 500 });
    receiver.close();
    expect(await ended(await fetches(config, { inputs }))).toMatchObject({
      status: 'failed',
      error: { code: 'upstream_unavailable' },
    });
  });

  it('reach nothing inside, whatever the definition says, and refuse secrets in it', async () => {
    for (const url of ['http://10.0.0.1/', 'https://169.254.169.254/latest/meta-data', 'http://example.com/']) {
      expect(await ended(await fetches({ url, failOn: [] }))).toMatchObject({
        status: 'failed',
        error: { code: 'egress_denied' },
      });
    }
    const headers = { Authorization: `Bearer ${'a1B2c3D4'.repeat(5)}` };
    const answer = await api().post(
      '/v1/host/capstan/workflows',
      workflow([node('ask', 'core.openwop.http.fetch', { config: { url: 'https://api.example', headers } })]),
    );
    expect(answer.status).toBe(422);
  });

  const runsCode = (code: string, more: object = {}): Promise<string> =>
    register(
      api(),
      workflow([
        node('code', 'vendor.capstan.code.javascript', {
          config: { code, ...more },
          inputs: { lines: variable('lines', true) },
        }),
      ]),
    );

  it('run programs of their authors, which a replay repeats, and which reach nothing', async () => {
    const id = await runsCode(`
      const total = inputs.lines.reduce((sum, { price, count }) => sum + price * count, 0);
      return { total, at: Date.now(), draw: Math.random(), host: typeof process + typeof fetch };
    `);
    const run = await ended(id, {
      lines: [
        { price: 2, count: 3 },
        { price: 1, count: 1 },
      ],
    });
    expect(run.nodeStates.code.outputs).toEqual({
      total: 7,
      at: Date.parse(run.nodeStates.code.startedAt),
      draw: expect.any(Number),
      host: 'undefinedundefined',
    });
    expect(await shape((await replayed(run.runId)).runId)).toEqual(await shape(run.runId));
    expect((await ended(await runsCode('return [1];'))).nodeStates.code.outputs).toEqual({ result: [1] });
  });

  it('end programs that do not end or take too much, and tell what is wrong with others', async () => {
    for (const [code, config, error] of [
      ['for (;;) {}', { timeoutMs: 1_000 }, 'sandbox_timeout'],
      [
        'const a = []; for (;;) a.push(a.length / 3, a.length / 7);',
        { memoryMb: 16, timeoutMs: 20_000 },
        'sandbox_memory_exceeded',
      ],
      ['return inputs.absent.member;', {}, 'code_error'],
    ] as const) {
      const run = await ended(await runsCode(code, config));
      expect(run).toMatchObject({ status: 'failed', error: { code: error } });
    }
  });
});

/** Nodes that keep something, or start runs. */
onEachStore('nodes that store values or start runs', (host) => {
  const { api, ended, replayed, shape } = speaksTo(host);

  /** The children of a run, in the order in which it asked for them. */
  const dispatched = async (runId: string): Promise<string[]> =>
    (await api().events(runId)).flatMap(({ type, payload }) =>
      type === 'node.dispatched' ? [payload.childRunId] : [],
    );

  it.each([
    ['core.delay', { delayMs: 0.5 }],
    ['core.flow.wait', { mode: 'duration', seconds: 0.0015 }],
    ['vendor.capstan.memory.remember', { memoryRef: 'moments', ttlSeconds: 0.0015 }],
    ['core.storage.kv-set', { ttlSeconds: 0.0015 }],
  ])('take parts of a millisecond: %s', async (typeId, config) => {
    const inputs = { key: fixed('moment'), value: fixed(1), content: fixed('soon over') };
    const run = await ended(await register(api(), workflow([node('a', typeId, { config, inputs })])));
    expect(run.status).toBe('completed');
  });

  /** One workflow a step: what each run did is in its outputs. */
  const kv = (who: Api, op: string, config: object, inputs: Record<string, unknown>): Promise<Body> =>
    register(
      who,
      workflow([
        node('kv', `core.storage.kv-${op}`, {
          config: { ...config },
          inputs: Object.fromEntries(Object.entries(inputs).map(([port, value]) => [port, fixed(value)])),
        }),
      ]),
    ).then(async (id) => who.ended(await who.run(id)));
  const kvOutputs = async (...given: Parameters<typeof kv>): Promise<Body> =>
    (await kv(...given)).nodeStates.kv.outputs;

  it('remember values from one run to the next: set, read, swapped, counted, listed, forgotten', async () => {
    const { body } = await host().anonymous.get('/.well-known/openwop');
    expect(body.kvStorage).toMatchObject({ supported: true, atomicIncrement: true, compareAndSwap: true });
    const namespace = unique('space');
    const key = 'cart/1';
    const value = { items: ['a'], note: null };
    expect(await kvOutputs(api(), 'get', { namespace }, { key })).toEqual({ found: false });
    expect(await kvOutputs(api(), 'set', { namespace }, { key, value })).toEqual({ ok: true, replaced: false });
    expect(await kvOutputs(api(), 'get', { namespace }, { key })).toEqual({ found: true, value });
    expect(await kvOutputs(api(), 'get', {}, { key })).toEqual({ found: false });
    expect(await kvOutputs(api(), 'cas', { namespace }, { key, expect: 'other', set: 2 })).toEqual({
      swapped: false,
      actual: value,
    });
    expect(await kvOutputs(api(), 'cas', { namespace }, { key, expect: value, set: 2 })).toEqual({ swapped: true });
    expect(await kvOutputs(api(), 'cas', { namespace }, { key: 'cart/2', expect: null, set: 1 })).toEqual({
      swapped: true,
    });
    expect(await kvOutputs(api(), 'atomic-increment', { namespace, delta: 5 }, { key })).toEqual({
      value: 7,
      previous: 2,
    });
    await kvOutputs(api(), 'set', { namespace }, { key: 'other', value: true });
    const first = await kvOutputs(api(), 'list', { namespace, prefix: 'cart/', limit: 1 }, {});
    expect(first).toEqual({ keys: ['cart/1'], nextCursor: expect.any(String) });
    expect(
      await kvOutputs(api(), 'list', { namespace, prefix: 'cart/', limit: 1 }, { cursor: first.nextCursor }),
    ).toEqual({ keys: ['cart/2'], nextCursor: null });
    expect(await kvOutputs(api(), 'delete', { namespace }, { key })).toEqual({ deleted: true });
    expect(await kvOutputs(api(), 'delete', { namespace }, { key })).toEqual({ deleted: false });
  });

  it('remember nothing for other tenants and workspaces, nor for replays, and no secrets', async () => {
    const namespace = unique('space');
    const own = await kv(api(), 'atomic-increment', { namespace }, { key: 'count' });
    for (const who of ['other', 'workspace'] as const) {
      expect(await kvOutputs(host().as(who), 'get', { namespace }, { key: 'count' })).toEqual({ found: false });
      expect(await kvOutputs(host().as(who), 'list', { namespace }, {})).toEqual({ keys: [], nextCursor: null });
    }
    expect((await replayed(own.runId)).nodeStates.kv.outputs).toEqual({ value: 1, previous: 0 });
    expect(await kvOutputs(api(), 'get', { namespace }, { key: 'count' })).toEqual({ found: true, value: 1 });
  });

  it('keep what they remember within bounds, and count together without losing anything', async () => {
    const namespace = unique('space');
    for (const [op, inputs, code] of [
      ['set', { key: 'k'.repeat(513), value: 1 }, 'storage_limit_exceeded'],
      ['set', { key: 'a', value: 'x'.repeat(65_536) }, 'storage_limit_exceeded'],
      ['set', { key: 'a\u0000b', value: 1 }, 'validation_error'],
      ['set', { value: 1 }, 'validation_error'],
      ['get', { key: 7 }, 'validation_error'],
    ] as const) {
      expect(await kv(api(), op, { namespace }, { ...inputs })).toMatchObject({ status: 'failed', error: { code } });
    }
    await kvOutputs(api(), 'set', { namespace }, { key: 'text', value: 'abc' });
    expect(await kv(api(), 'atomic-increment', { namespace }, { key: 'text' })).toMatchObject({ status: 'failed' });
    const counting = await register(
      api(),
      workflow([
        node('kv', 'core.storage.kv-atomic-increment', { config: { namespace }, inputs: { key: fixed('n') } }),
      ]),
    );
    const runs = await Promise.all(Array.from({ length: 30 }, () => api().run(counting)));
    const values = await Promise.all(runs.map(async (id) => (await api().ended(id)).nodeStates.kv.outputs.value));
    expect(values.sort((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, index) => index + 1));
  });

  it('show a suite that one tenant does not see the keys of another, and that they count', async () => {
    const key = unique('key');
    const call = (tenantId: string, op: string, args: object): Promise<Answer> =>
      api().post('/v1/host/sample/test/surface', { tenantId, surface: 'kv', op, args: { key, ...args } });
    expect((await call('tenant-a', 'set', { value: 'v1', ttlSeconds: 60 })).status).toBe(200);
    expect((await call('tenant-b', 'get', {})).body).toEqual({ found: false });
    expect((await call('tenant-a', 'get', {})).body).toEqual({
      found: true,
      value: 'v1',
      ttlRemainingMs: expect.any(Number),
    });
    expect((await call('tenant-a', 'cas', { expect: 'v0', set: 'v2' })).body).toEqual({ swapped: false, actual: 'v1' });
    const counted = await Promise.all(
      Array.from({ length: 20 }, () => call('tenant-b', 'atomicIncrement', { delta: 1 })),
    );
    expect(counted.map(({ status }) => status)).toEqual(counted.map(() => 200));
    expect((await call('tenant-b', 'get', {})).body).toMatchObject({ value: 20 });
    expect((await call('tenant-b', 'set', { key: 'a'.repeat(600), value: 1 })).status).toBe(400);
  });

  /** A child that doubles its item, or fails on a negative one. */
  const child = () =>
    register(
      api(),
      workflow(
        [
          node('sign', 'core.flow.if', {
            config: { predicate: { path: '', op: 'gte', value: 0 } },
            inputs: { value: variable('item') },
          }),
          node('stop', 'core.flow.stop-and-error', { config: { code: 'negative', message: 'It is negative.' } }),
          setResult('variables.item * 2'),
        ],
        [
          {
            id: 'no',
            sourceNodeId: 'sign',
            targetNodeId: 'stop',
            condition: { type: 'equals', left: 'branch', right: 'else' },
          },
          {
            id: 'yes',
            sourceNodeId: 'sign',
            targetNodeId: 'set',
            condition: { type: 'equals', left: 'branch', right: 'then' },
          },
        ],
        { variables: [{ name: 'item', type: 'number' }] },
      ),
    );
  const overItems = async (config: object): Promise<string> =>
    register(
      api(),
      workflow([node('each', FOR_EACH, { config: { ...config }, inputs: { array: variable('items') } })], [], {
        variables: [{ name: 'items', type: 'array', required: true }],
      }),
    );

  it('run a workflow for each item, in order, never more at a time than they may, and once', async () => {
    const each = await overItems({ workflowId: await child(), concurrency: 3 });
    const items = Array.from({ length: 25 }, (_, index) => index);
    const run = await ended(each, { items });
    expect(run.status, JSON.stringify(run.error)).toBe('completed');
    expect(run.nodeStates.each.outputs).toMatchObject({
      joinOutcome: 'satisfied',
      results: items.map((item) => item * 2),
      completed: 25,
      total: 25,
    });
    expect(run.childRuns).toHaveLength(25);
    const events = await api().events(run.runId);
    let live = 0;
    for (const { type, payload } of events) {
      if (type === 'node.dispatched') live++;
      if (type === 'capstan.child.changed' && payload.status === 'completed') live--;
      expect(live).toBeLessThanOrEqual(3);
    }
    const children = await dispatched(run.runId);
    const inputs = await Promise.all(children.map(async (id) => (await api().get(`/v1/runs/${id}`)).body.inputs));
    expect(inputs).toEqual(items.map((item) => ({ item })));
    expect(await shape((await replayed(run.runId)).runId)).toEqual(await shape(run.runId));
  });

  it('end with the first item that fails, or gather the others, as they are told', async () => {
    const workflowId = await child();
    const items = [1, -1, 3];
    const failed = await ended(await overItems({ workflowId }), { items });
    expect(failed).toMatchObject({
      status: 'failed',
      error: { code: 'child_failed', details: { index: 1, childStatus: 'failed', childError: 'negative' } },
    });
    const gathered = await ended(await overItems({ workflowId, onChildFailure: 'collect' }), { items });
    expect(gathered.status).toBe('completed');
    expect(gathered.nodeStates.each.outputs).toMatchObject({
      joinOutcome: 'partial',
      results: [2, null, 6],
      children: [{}, { childStatus: 'failed', error: { code: 'negative' } }, {}],
    });
  });

  it('cancel the children that run, with the node or with a failure of one, and start no more', async () => {
    const each = await overItems({ workflowId: 'conformance-cancellable', itemVariable: 'ignored', concurrency: 2 });
    const runId = await api().run(each, { inputs: { items: [1, 2, 3, 4] } });
    const { childRuns } = await api().until(runId, (it: Body) => it.childRuns?.length === 2);
    await api().post(`/v1/runs/${runId}/cancel`);
    for (const { runId: childId } of childRuns) expect((await api().ended(childId)).status).toBe('cancelled');
    expect((await api().get(`/v1/runs/${runId}`)).body.childRuns).toHaveLength(2);

    const second = await api().run(each, { inputs: { items: [1, 2, 3, 4] } });
    await api().until(second, (it: Body) => it.childRuns?.length === 2);
    const [first, other] = await dispatched(second);
    await api().post(`/v1/runs/${first}/cancel`);
    expect(await api().ended(second)).toMatchObject({ status: 'failed', error: { details: { index: 0 } } });
    expect((await api().ended(other!)).status).toBe('cancelled');
  });

  it('wait with their children for somebody, and go on with each answer', async () => {
    const each = await overItems({ workflowId: 'conformance-approval', concurrency: 2, resultVariable: 'item' });
    const runId = await api().run(each, { inputs: { items: ['a', 'b', 'c'] } });
    const answered = new Set<string>();
    for (let round = 0; round < 3; round++) {
      const isOpen = ({ runId: id, status }: Body): boolean => status === 'waiting-approval' && !answered.has(id);
      const { childRuns } = await api().until(
        runId,
        (it: Body) => it.status === 'waiting-approval' && it.childRuns.some(isOpen),
      );
      const { runId: childId } = childRuns.find(isOpen);
      answered.add(childId);
      const answer = await api().post(`/v1/runs/${childId}/interrupts/gate`, { resumeValue: { action: 'accept' } });
      expect(answer.status, answer.text).toBe(200);
    }
    expect((await api().ended(runId)).nodeStates.each.outputs.results).toEqual(['a', 'b', 'c']);
  });

  it('say what is wrong with a workflow that is not there', async () => {
    const run = await ended(await overItems({ workflowId: unique('nobody') }), { items: [1] });
    expect(run).toMatchObject({ status: 'failed', error: { code: 'unknown_child_workflow' } });
    expect(run.childRuns ?? []).toEqual([]);
  });
});

describe.each(storesFor('a host that is killed between items'))(
  'a host that is killed between items, on %s',
  (kind) => {
    it('starts no child of an item twice, and gathers all results in order', async () => {
      const folder = freshFolder();
      const environment: Record<string, string> =
        kind === 'sqlite'
          ? { CAPSTAN_DATA: folder.path }
          : {
              CAPSTAN_DATA: folder.path,
              DATABASE_URL: await migratedDatabase(inject('postgresUrl')!),
              CAPSTAN_LEASE_MS: '600',
            };
      let host = await spawnHost(environment);
      try {
        const child = await register(
          host.as('editor'),
          workflow(
            [node('wait', 'core.delay', { config: { ms: 60 } }), setResult('variables.item + 1')],
            line('wait', 'set'),
          ),
        );
        const each = await register(
          host.as('editor'),
          workflow([
            node('each', FOR_EACH, {
              config: { workflowId: child, concurrency: 3 },
              inputs: { array: variable('items') },
            }),
          ]),
        );
        const items = Array.from({ length: 30 }, (_, index) => index);
        const runId = await host.as('editor').run(each, { inputs: { items } });
        for (const count of [4, 13]) {
          await host.as('editor').until(runId, (it: Body) => it.childRuns?.length >= count);
          host.signal('SIGKILL');
          await host.exit;
          host = await spawnHost(environment);
        }
        const run = await host.as('editor').ended(runId);
        expect(run.nodeStates.each.outputs.results).toEqual(items.map((item) => item + 1));
        expect(run.childRuns).toHaveLength(items.length);
      } finally {
        host.signal('SIGKILL');
        await host.exit;
        folder.remove();
      }
    });
  },
);
