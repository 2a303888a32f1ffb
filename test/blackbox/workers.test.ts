import { afterAll, expect, it } from 'vitest';
import type { WorkerTask } from '../../src/protocol/running/workers.ts';
import { Api } from '../support/api.ts';
import { freshFolder } from '../support/database.ts';
import { fixed, node, register, unique, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { eventsOf } from '../support/interrupts.ts';
import { scriptedModel } from '../support/scripted-model.ts';
import { onStoresAtOnce } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** Goal: node code may live outside the host. Method: the test is the worker, and speaks HTTP. */

const TYPES = '/v1/host/capstan/workers/types';
const TASKS = '/v1/host/capstan/workers/tasks';

type Task = Pick<WorkerTask, 'taskId' | 'epoch'>;

/** An agent that calls the tool twice, and then says what it was told last. */
const folder = freshFolder();
afterAll(folder.remove);
const TWICE = [1, 2].map((id) => ({
  id: `${id}`,
  name: 'openwop_acme_plan',
  arguments: { inputs: { login: `u${id}` } },
}));
const models = [
  scriptedModel(folder.path, {
    answers: [
      { when: { contains: 'enterprise' }, content: 'Answer today.' },
      { when: { contains: 'Error' }, content: 'No idea.' },
      { toolCalls: TWICE },
    ],
  }),
];

onStoresAtOnce(
  'a node that workers serve',
  (host) => {
    const owner = (): Api => host().as('owner');
    const put = (path: string, body: object) => owner().request('PUT', path, body);
    const declare = async (more: object = {}): Promise<string> => {
      const typeId = `${unique('acme')}.fetchInvoice`;
      expect((await put(`${TYPES}/${typeId}`, { description: 'Fetches.', ...more })).status).toBe(200);
      return typeId;
    };
    const started = async (typeId: string, more: object = {}): Promise<string> =>
      owner().run(await register(owner(), workflow([node('a', typeId, more)])));
    const claim = async (typeId: string, more: object = {}, who: Api = owner()) => {
      const { status, body } = await who.post(`${TASKS}:claim`, { types: [typeId], waitSeconds: 20, ...more });
      expect(status).toBe(200);
      return body.tasks;
    };
    const report = (task: Task, what: string, more: object, who: Api = owner()) =>
      who.post(`${TASKS}/${task.taskId}${what}`, { epoch: task.epoch, ...more });

    it('is handed over with its config and inputs, and ends with what the worker reports', async () => {
      const typeId = await declare({ outputs: { type: 'object', required: ['amount'] } });
      const runId = await started(typeId, { config: { currency: 'CHF' }, inputs: { id: fixed(7) } });
      const lines = async (): Promise<string[]> =>
        (await eventsOf(owner(), runId, 'log.appended')).map(({ payload }) => payload.message);
      expect(await until(lines, ({ length }) => length > 0)).toEqual([`waiting for a worker of ${typeId}`]);
      const [task] = await claim(typeId);
      expect(task).toMatchObject({ typeId, runId, nodeId: 'a', attempt: 0, epoch: 1 });
      expect(task).toMatchObject({ config: { currency: 'CHF' }, inputs: { id: 7 } });
      expect((await report(task, ':heartbeat', { progress: 'half' })).body).toMatchObject({ isCancelled: false });
      const done = { outputs: { amount: 12 }, logs: [{ message: 'fetched', fields: { rows: 1 } }] };
      expect((await report(task, ':complete', done)).status).toBe(204);
      expect((await report(task, ':complete', done)).status).toBe(204);
      const run = await owner().ended(runId);
      expect(run).toMatchObject({ status: 'completed', nodeStates: { a: { outputs: { amount: 12 } } } });
      expect(await lines()).toEqual([`waiting for a worker of ${typeId}`, 'fetched']);
    });

    it('shows its open attempts: those that wait, and who has the others', async () => {
      const typeId = await declare();
      const open = async (who: Api = owner()) =>
        (await who.get(TASKS)).body.items.filter((each: { typeId: string }) => each.typeId === typeId);
      const counted = async () =>
        (await owner().get(TYPES)).body.items.find((each: { typeId: string }) => each.typeId === typeId);
      const first = await started(typeId);
      await until(open, ({ length }) => length === 1);
      const second = await started(typeId);
      await until(open, ({ length }) => length === 2);
      expect(await open()).toMatchObject([
        { runId: first, nodeId: 'a', state: 'waiting', pool: 'default' },
        { runId: second, state: 'waiting' },
      ]);
      expect(await counted()).toMatchObject({ waiting: 2, leased: 0 });
      const [task] = await claim(typeId, { worker: 'blue', leaseSeconds: 60 });
      await report(task, ':heartbeat', { progress: 'half' });
      const held = { runId: first, state: 'leased', worker: 'blue', progress: 'half', leaseUntil: expect.any(String) };
      expect(await open()).toMatchObject([held, { runId: second, state: 'waiting' }]);
      expect(await counted()).toMatchObject({ waiting: 1, leased: 1 });
      expect(await open(host().as('other'))).toEqual([]);
      await report(task, ':complete', { outputs: {} });
      await owner().post(`/v1/runs/${second}/cancel`, {});
      expect(await until(open, ({ length }) => length === 0)).toEqual([]);
    });

    it('is not known to other tenants, and neither are its attempts', async () => {
      const typeId = await declare();
      const stranger = host().as('other');
      const foreign = await stranger.post('/v1/host/capstan/workflows', workflow([node('a', typeId)]));
      expectRefusal(foreign, 422, 'validation_error');
      const runId = await started(typeId);
      expect(await claim(typeId, { waitSeconds: 0 }, stranger)).toEqual([]);
      const [task] = await claim(typeId);
      for (const what of [':heartbeat', ':complete', '/effects']) {
        const more = what === ':complete' ? { outputs: {} } : what === '/effects' ? { name: 'pay' } : {};
        expectRefusal(await report(task, what, more, stranger), 404, 'not_found');
      }
      expect((await report(task, ':complete', { outputs: {} })).status).toBe(204);
      expect((await owner().ended(runId)).status).toBe('completed');
    });

    it('keeps its effects from one attempt to the next, and fails or is tried again as the worker says', async () => {
      const typeId = await declare();
      const runId = await started(typeId, { settings: { retry: { maxRetries: 2, delayMs: 1 } } });
      const [first] = await claim(typeId);
      await report(first, '/effects', { name: 'charge' });
      await put(`${TASKS}/${first.taskId}/effects`, { epoch: 1, name: 'charge', result: 'once' });
      await report(first, ':fail', {
        error: { code: 'busy', message: 'Busy.', retryable: true },
        logs: [{ message: 'tried' }],
      });

      const [second] = await claim(typeId);
      expect(second.attempt).toBe(1);
      expect((await report(second, '/effects', { name: 'charge' })).body).toMatchObject({
        state: 'done',
        result: 'once',
      });
      await report(second, ':fail', { error: { code: 'gone', message: 'Gone.', retryable: false } });
      expect(await owner().ended(runId)).toMatchObject({ status: 'failed', error: { code: 'gone' } });
      const lines = (await eventsOf(owner(), runId, 'log.appended')).map(({ payload }) => payload.message);
      expect(lines).toContain('tried');
    });

    const declareTool = (more: object = {}) =>
      put(`${TYPES}/acme.plan`, { description: 'Says who pays what.', tool: 'read', ...more });
    const askAgent = async (): Promise<string> => {
      const config = { provider: 'play', model: 'small', tools: ['openwop:acme.plan'] };
      return owner().run(await register(owner(), workflow([node('agent', 'core.agents.run', { config })])));
    };

    // Both declare the one tool that the model calls.
    it('is called by agents as a tool: each call is made once, with effects of its own', {
      concurrent: false,
    }, async () => {
      const inputs = { type: 'object', properties: { login: { type: 'string' } }, required: ['login'] };
      await declareTool({ inputs });
      const { body: tool } = await owner().get('/v1/tools/openwop:acme.plan');
      expect(tool).toMatchObject({ source: 'node-pack', safetyTier: 'read', inputSchema: { properties: { inputs } } });
      expect((await host().as('other').get('/v1/tools/openwop:acme.plan')).status).toBe(404);
      const runId = await askAgent();
      const keys: string[] = [];
      for (const login of ['u1', 'u2']) {
        const [task] = await claim('acme.plan');
        expect(task).toMatchObject({ typeId: 'acme.plan', runId, nodeId: 'agent', inputs: { login } });
        const { body } = await report(task, '/effects', { name: 'look up' });
        expect(body.state).toBe('claimed');
        keys.push(body.idempotencyKey);
        expectRefusal(
          await report(task, ':suspend', { waitsFor: { answer: { prompt: 'Who?' } } }),
          400,
          'validation_error',
        );
        await put(`${TASKS}/${task.taskId}/effects`, { epoch: task.epoch, name: 'look up', result: login });
        expect((await report(task, ':complete', { outputs: { plan: 'enterprise' } })).status).toBe(204);
      }
      expect(new Set(keys).size).toBe(2);
      const { status, nodeStates } = await owner().ended(runId);
      expect([status, nodeStates.agent.outputs.finalMessage]).toEqual(['completed', 'Answer today.']);
      expect(await eventsOf(owner(), runId, 'agent.toolReturned')).toHaveLength(2);
      const { body: replay } = await owner().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq: 0 });
      expect((await owner().ended(replay.runId)).status).toBe('completed');
    });

    it('is a tool whose failures, wrong outputs and silence are told to the agent', { concurrent: false }, async () => {
      await declareTool({ outputs: { type: 'object', required: ['plan'] }, timeoutMs: 60_000 });
      const runId = await askAgent();
      const [failing] = await claim('acme.plan');
      await report(failing, ':fail', { error: { code: 'gone', message: 'Nobody knows.' } });
      const [wrong] = await claim('acme.plan');
      await report(wrong, ':complete', { outputs: {} });
      await owner().ended(runId);
      await declareTool({ timeoutMs: 50 });
      const unanswered = await askAgent();
      await owner().ended(unanswered);
      const told = async (id: string): Promise<string[]> =>
        (await eventsOf(owner(), id, 'agent.toolReturned')).map(({ payload }) => payload.error.message);
      expect(await told(runId)).toEqual(['Nobody knows.', expect.stringContaining('do not fit its schema')]);
      expect(await told(unanswered)).toEqual(
        Array(2).fill('No worker returned a result for acme.plan before the deadline.'),
      );
    });

    it('is in the audit log when its declaration changes, and not when it is repeated', async () => {
      const typeId = await declare();
      for (const description of ['Fetches.', 'Fetches more.']) await put(`${TYPES}/${typeId}`, { description });
      await owner().request('DELETE', `${TYPES}/${typeId}`);
      const { body } = await owner().get('/v1/host/capstan/audit?limit=200');
      const about = body.items.filter(({ target }: { target?: string }) => target === typeId);
      const actions = about.map(({ action }: { action: string }) => action);
      expect(actions.toReversed()).toEqual(['worker.declare', 'worker.declare', 'worker.remove']);
    });

    it('goes to another worker when the lease is over, and the late one can report nothing', async () => {
      const typeId = await declare();
      const runId = await started(typeId);
      const [late] = await claim(typeId, { leaseSeconds: 3 });
      const first = await report(late, '/effects', { name: 'charge' });
      expect(first.body).toMatchObject({ state: 'claimed', idempotencyKey: expect.any(String) });
      const recorded = await put(`${TASKS}/${late.taskId}/effects`, {
        ...{ epoch: late.epoch, name: 'charge', result: { paid: 1 } },
      });
      expect(recorded.body).toMatchObject({ state: 'done', result: { paid: 1 } });
      const [task] = await claim(typeId);
      expect(task).toMatchObject({ taskId: late.taskId, epoch: 2 });
      for (const [what, more] of [
        [':heartbeat', {}],
        ['/effects', { name: 'other' }],
        [':complete', { outputs: { by: 'late' } }],
        [':fail', { error: { code: 'no', message: 'No.' } }],
      ] as const) {
        expectRefusal(await report(late, what, more), 409, 'conflict');
      }
      const again = await report(task, '/effects', { name: 'charge' });
      expect(again.body).toMatchObject({ ...recorded.body, idempotencyKey: first.body.idempotencyKey });
      await report(task, ':complete', { outputs: { by: 'second' } });
      expect((await owner().ended(runId)).nodeStates.a.outputs).toEqual({ by: 'second' });
    });

    it('is given back while it waits, and handed over with what has come', async () => {
      const typeId = await declare();
      const child = await register(owner(), workflow([node('sum', 'core.identity', { inputs: { total: fixed(3) } })]));
      const runId = await started(typeId, { config: { starts: child }, inputs: { id: fixed(7) } });
      const suspend = (task: Task, waitsFor: object) => report(task, ':suspend', { waitsFor });
      const [first] = await claim(typeId);
      await report(first, '/effects', { name: 'charge' });
      await put(`${TASKS}/${first.taskId}/effects`, { epoch: first.epoch, name: 'charge', result: 'once' });
      const question = { answer: { prompt: 'Go on?' } };
      expect((await suspend(first, question)).status).toBe(204);
      expect((await suspend(first, question)).status, 'a report that is repeated').toBe(204);
      expectRefusal(await report(first, ':complete', { outputs: {} }), 409, 'conflict');
      const asked = await owner().until(runId, ({ interrupt }) => interrupt !== undefined);
      expect(asked.interrupt).toMatchObject({ kind: 'clarification', nodeId: 'a' });
      expect(await claim(typeId, { waitSeconds: 0 }), 'nobody works meanwhile').toEqual([]);
      const resumeValue = { answers: { answer: 'yes' } };
      await owner().post(`/v1/runs/${runId}/interrupts/a`, { resumeValue });

      const [second] = await claim(typeId);
      expect(second).toMatchObject({ taskId: first.taskId, inputs: { id: 7 }, answers: [resumeValue] });
      expect(second.epoch).toBeGreaterThan(first.epoch);
      expect((await report(second, '/effects', { name: 'charge' })).body).toMatchObject({
        state: 'done',
        result: 'once',
      });
      await suspend(second, { until: new Date(Date.now() + 50).toISOString() });
      const [third] = await claim(typeId);
      expect(third).toMatchObject({ answers: [resumeValue], waitedUntil: expect.any(String) });
      await suspend(third, { child: { workflowId: child, inputs: { x: 1 } } });
      const [fourth] = await claim(typeId);
      expect(fourth.children).toMatchObject([{ status: 'completed', outputs: { sum: { total: 3 } } }]);
      await report(fourth, ':complete', { outputs: { ok: true } });
      expect(await owner().ended(runId)).toMatchObject({
        status: 'completed',
        nodeStates: { a: { outputs: { ok: true } } },
      });
      const { body: forked } = await owner().post(`/v1/runs/${runId}:fork`, { fromSeq: 0, mode: 'replay' });
      expect((await owner().ended(forked.runId)).status, 'a replay calls no worker').toBe('completed');
    });

    it('starts only what the config of the node names, and waits for one thing at a time', async () => {
      const typeId = await declare();
      const other = await register(owner(), workflow([node('a')]));
      const runId = await started(typeId);
      const [task] = await claim(typeId);
      for (const waitsFor of [{}, { until: '2030-01-01T00:00:00Z', answer: { prompt: 'x' } }, { answer: {} }]) {
        expectRefusal(await report(task, ':suspend', { waitsFor }), 400, 'validation_error');
      }
      await report(task, ':suspend', { waitsFor: { child: { workflowId: other } } });
      expect(await owner().ended(runId)).toMatchObject({ status: 'failed', error: { code: 'forbidden' } });
    });

    it('is leased by no more workers than asked, and each attempt once', async () => {
      const typeId = await declare();
      const id = await register(owner(), workflow(['a', 'b', 'c', 'd', 'e'].map((name) => node(name, typeId))));
      const runId = await owner().run(id);
      const claimed: Task[] = [];
      while (claimed.length < 5) {
        const tasks = await claim(typeId, { max: 2, worker: 'one of many', waitSeconds: 5 });
        expect(tasks.length).toBeLessThanOrEqual(2);
        claimed.push(...tasks);
      }
      expect(new Set(claimed.map(({ taskId }) => taskId)).size).toBe(5);
      for (const task of claimed) await report(task, ':complete', { outputs: {} });
      expect((await owner().ended(runId)).status).toBe('completed');
    });

    it('tells a worker that nobody waits any more', async () => {
      const typeId = await declare();
      const runId = await started(typeId);
      const [task] = await claim(typeId);
      await owner().post(`/v1/runs/${runId}/cancel`, {});
      await owner().ended(runId);
      expect((await report(task, ':heartbeat', {})).body.isCancelled).toBe(true);
      expect(await claim(typeId, { waitSeconds: 0 })).toEqual([]);
    });

    it('fails when no worker has a result in time', async () => {
      const typeId = await declare({ timeoutMs: 50 });
      const run = await owner().ended(await started(typeId));
      expect(run).toMatchObject({ status: 'failed', error: { code: 'node_timeout' } });
      expect(await claim(typeId, { waitSeconds: 0 })).toEqual([]);
    });

    it('refuses what does not fit its schemas', async () => {
      const schema = { type: 'object', properties: { id: { type: 'number' } }, additionalProperties: false };
      const typeId = await declare({ config: schema, inputs: schema, outputs: schema });
      const typo = workflow([node('a', typeId, { config: { di: 1 } })]);
      expectRefusal(await owner().post('/v1/host/capstan/workflows', typo), 422, 'validation_error');
      const wrong = await owner().ended(await started(typeId, { inputs: { id: fixed('seven') } }));
      expect(wrong.error).toMatchObject({ code: 'validation_error' });
      const runId = await started(typeId);
      const [task] = await claim(typeId);
      await report(task, ':complete', { outputs: { id: 'seven' } });
      expect((await owner().ended(runId)).error).toMatchObject({ code: 'invalid_outputs' });
      const unusable = await put(`${TYPES}/acme.bad`, { description: 'Bad.', inputs: { type: 'nonsense' } });
      expectRefusal(unusable, 400, 'validation_error');
      expectRefusal(await put(`${TYPES}/core.mine`, { description: 'Mine.' }), 400, 'validation_error');
    });

    it('is taken from the record by a replay, which calls no worker', async () => {
      const typeId = await declare();
      const runId = await started(typeId);
      const [task] = await claim(typeId);
      await report(task, ':complete', { outputs: { n: 1 } });
      await owner().ended(runId);
      const { body } = await owner().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq: 0 });
      expect(await owner().ended(body.runId)).toMatchObject({
        status: 'completed',
        nodeStates: { a: { outputs: { n: 1 } } },
      });
      expect(await claim(typeId, { waitSeconds: 0 })).toEqual([]);
    });

    it('waits beside other nodes of the run, and none keeps another from going on', async () => {
      const [one, two] = [await declare(), await declare()];
      const id = await register(
        owner(),
        workflow([node('a', one), node('b', two), node('c', 'core.delay', { config: { delayMs: 1 } })]),
      );
      const runId = await owner().run(id);
      for (const typeId of [two, one]) {
        const [task] = await claim(typeId);
        await report(task, ':complete', { outputs: { typeId } });
        await owner().until(runId, ({ nodeStates }) => nodeStates[task.nodeId]?.status === 'completed');
      }
      expect((await owner().ended(runId)).status).toBe('completed');
    });

    it('is listed while it is declared, with when a worker last asked for it', async () => {
      const typeId = await declare({ pool: 'gpu' });
      const found = async () =>
        (await owner().get(TYPES)).body.items.find((each: { typeId: string }) => each.typeId === typeId);
      expect(await found()).toEqual({ typeId, description: 'Fetches.', pool: 'gpu', waiting: 0, leased: 0 });
      await claim(typeId, { waitSeconds: 0 });
      expect((await found()).seenAt).toEqual(expect.any(String));
      expect((await owner().request('DELETE', `${TYPES}/${typeId}`)).status).toBe(204);
      expect(await found()).toBeUndefined();
      expectRefusal(await owner().request('DELETE', `${TYPES}/${typeId}`), 404, 'not_found');
    });

    it('is served with keys that can do nothing else, of one pool alone', async () => {
      const made = async (pool: string): Promise<Api> => {
        const request = { name: unique('worker'), scopes: ['workers:serve'], pool };
        const { body } = await owner().post('/v1/host/capstan/keys', request);
        expect(body).toMatchObject({ pool, scopes: ['workers:serve'] });
        return new Api(host().url, body.key);
      };
      const [gpu, cpu] = [await made('gpu'), await made('cpu')];
      const typeId = `${unique('acme')}.train`;
      const declared = await gpu.request('PUT', `${TYPES}/${typeId}`, { description: 'Trains.' });
      expect(declared.body.pool).toBe('gpu');
      for (const more of [{}, { pool: 'gpu' }]) {
        const stolen = await cpu.request('PUT', `${TYPES}/${typeId}`, { description: 'Steals.', ...more });
        expectRefusal(stolen, 403, 'forbidden');
      }
      expectRefusal(await cpu.request('DELETE', `${TYPES}/${typeId}`), 404, 'not_found');
      const runId = await started(typeId);
      expect(await claim(typeId, { waitSeconds: 0 }, cpu)).toEqual([]);
      const [task] = await claim(typeId, {}, gpu);
      expectRefusal(await report(task, ':complete', { outputs: {} }, cpu), 404, 'not_found');
      for (const path of [
        `/v1/runs/${runId}`,
        '/v1/host/capstan/runs',
        '/v1/host/capstan/workflows',
        '/v1/host/capstan/keys',
      ]) {
        expectRefusal(await gpu.get(path), 403, 'forbidden');
      }
      expectRefusal(await gpu.post('/v1/runs', { workflowId: 'any' }), 403, 'forbidden');
      expect((await report(task, ':complete', { outputs: {} }, gpu)).status).toBe(204);
      expect((await owner().ended(runId)).status).toBe('completed');
      const wide = { name: 'wide', role: 'editor', pool: 'gpu' };
      expectRefusal(await owner().post('/v1/host/capstan/keys', wide), 400, 'validation_error');
      expectRefusal(
        await host()
          .as('editor')
          .post(`${TASKS}:claim`, { types: [typeId] }),
        403,
        'forbidden',
      );
    });

    it('shows a worker its own config and inputs, and nothing else of the run or the host', async () => {
      const typeId = await declare({ inputs: { properties: { asked: {} } } });
      const definition = workflow([node('a', typeId, { inputs: { id: fixed(1) } })], [], {
        variables: [{ name: 'other', type: 'string', defaultValue: 'not-for-workers' }],
      });
      const runId = await owner().run(await register(owner(), definition), {
        inputs: { hidden: 'not-for-workers', asked: 2 },
      });
      const [task] = await claim(typeId);
      expect(Object.keys(task).sort()).toEqual(
        ['attempt', 'config', 'epoch', 'inputs', 'leaseUntil', 'nodeId', 'runId', 'taskId', 'typeId'].sort(),
      );
      expect(task.inputs).toEqual({ id: 1, asked: 2 });
      await report(task, ':complete', { outputs: {} });
      await owner().ended(runId);
    });
  },
  { models },
);
