import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api, Frame } from '../support/api.ts';
import { freshFolder } from '../support/database.ts';
import { fixed, node, register, unique, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import {
  counting,
  evaluations,
  GOALS,
  judged,
  never,
  onThird,
  PLANS,
  plan,
  planned,
  reaches,
  read,
  registerCounting,
  run,
  setGoal,
  start,
  told,
} from '../support/goals.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { killableHosts } from '../support/killed.ts';
import { Receiver } from '../support/receiver.ts';
import { scriptedModel } from '../support/scripted-model.ts';
import { STORES } from '../support/stores.ts';
import { Stream } from '../support/stream.ts';
import { until } from '../support/until.ts';

/** What works on goals by itself, and what stops it: arms, money and time, through restarts and on several hosts. */

type Body = Answer['body'];

const SCHEDULES = '/v1/host/capstan/schedules';
const HEARTBEATS = '/v1/host/capstan/heartbeats';
const COMMITMENTS = '/v1/host/capstan/commitments';
const EVERY_SECOND = '* * * * * *';
/** A run costs a hundredth of a dollar: ten thousand tokens at a dollar a million. */
const USAGE = { inputTokens: 4_000, outputTokens: 6_000 };
const VERDICT = { satisfied: true, confidence: 0.9, evidence: [{ key: 'done', met: true, detail: 'It is.' }] };
const SCRIPT = {
  answers: [
    { when: { contains: 'UNTRUSTED' }, data: VERDICT, usage: USAGE },
    { content: 'Done.', usage: USAGE },
  ],
};
const asking = workflow([
  node('ask', 'core.ai.chatCompletion', {
    config: { provider: 'play', model: 'small', maxTokens: 6_000 },
    inputs: { prompt: fixed('Work. '.repeat(2_700)) },
  }),
]);

describe.concurrent.each(STORES)('a goal, on %s', (kind) => {
  const folder = freshFolder();
  let host: TestHost;
  const api = (): Api => host.as('editor');

  beforeAll(async () => {
    const models = [scriptedModel(folder.path, SCRIPT, { prices: { small: { input: 1, output: 1 } } })];
    const goals = { standstillMax: 10, judgeTries: 2, judgeRetryMs: 20 };
    host = await startTestHost(kind, inject('postgresUrl'), { models, goals, dataFolder: folder.path });
    await registerCounting(api());
    await register(api(), asking);
  });
  afterAll(async () => {
    await host?.stop();
    folder.remove();
  });

  const runsOf = async (goalId: string): Promise<Body[]> =>
    (await api().get(`/v1/host/capstan/runs?limit=200&tag=goal:${goalId}`)).body.items;
  /** How each run below a run ended, and what it was given to spend, in the order in which they began. */
  const paidBelow = async (runId: string): Promise<[string, number][]> => {
    const dispatched = (await api().events(runId)).filter(({ type }) => type === 'node.dispatched');
    const below = dispatched.map(({ payload }) => api().get(`/v1/runs/${payload.childRunId}`));
    return (await Promise.all(below)).map(({ body }) => [body.status, body.configurable.budget.maxCostUsd]);
  };
  const schedules = async (): Promise<Body[]> => (await api().get(`${SCHEDULES}?limit=200`)).body.items;

  describe('that goes on by itself', () => {
    const bySchedule = { continuation: { mode: 'schedule' }, bounds: { maxLoopIterations: 5 } };
    const byHeartbeat = { continuation: { mode: 'heartbeat' }, bounds: { maxLoopIterations: 5 } };

    const byCommitment = { continuation: { mode: 'commitment' }, bounds: { maxLoopIterations: 5 } };
    const ARMS: Readonly<Record<string, string>> = { sch: SCHEDULES, hb: HEARTBEATS, cmt: COMMITMENTS };

    it.each<[string, object, () => object]>([
      ['a schedule', bySchedule, () => ({ schedule: { cron: EVERY_SECOND } })],
      ['a heartbeat', byHeartbeat, () => ({ heartbeat: { intervalSec: 1 } })],
      ['a commitment', byCommitment, () => ({ commitment: { at: new Date().toISOString(), everySec: 1 } })],
    ])('by %s is reached on the run that reaches it, and its arm is gone with it', async (_arm, body, how) => {
      const id = await planned(api(), body, { criteria: [onThird], ...how() });
      const armed = (await read(api(), id)).continuation.armRef;
      const path = ARMS[armed.split('-')[0]];
      expect((await api().get(`${path}/${armed}`)).body.belongsTo).toBe(`goal:${id}`);
      const goal = await reaches(api(), id, 'satisfied');
      expect(goal).toMatchObject({ continuation: { armRef: null }, progress: { iterations: 3 } });
      expectRefusal(await api().get(`${path}/${armed}`), 404, 'not_found');
      const runs = await runsOf(id);
      expect(runs.map(({ runId }) => runId).reverse()).toEqual(goal.progress.contributingRunIds);
    });

    it('by a schedule that somebody lends it, which is off when it is given back', async () => {
      const lent = (await api().post(SCHEDULES, { workflowId: counting.id, cron: EVERY_SECOND })).body.id;
      // It may be due before the goal has a plan: also that run is judged, and not good enough.
      const verifier = { id: unique('ver'), kind: 'criteria', criteria: [never] };
      expect((await api().post('/v1/host/capstan/verifiers', verifier)).status).toBe(201);
      const { id } = await setGoal(api(), {
        completion: { check: 'verifier', verifierRef: verifier.id },
        continuation: { mode: 'schedule', armRef: lent },
        bounds: { maxLoopIterations: 2 },
      });
      expect((await api().get(`${PLANS}/${id}/plan`)).body.workflowId).toBe(counting.id);
      await plan(api(), id);
      await reaches(api(), id, 'bound-exceeded');
      expect(await runsOf(id)).toHaveLength(2);
      const { body } = await api().get(`${SCHEDULES}/${lent}`);
      expect(body.enabled).toBe(false);
      expect(body).not.toHaveProperty('belongsTo');
    });

    it('by a schedule that nobody can take away while it is lent', async () => {
      const lent = (await api().post(SCHEDULES, { workflowId: counting.id, cron: '0 0 1 1 *' })).body.id;
      const { id } = await setGoal(api(), { continuation: { mode: 'schedule', armRef: lent } });
      await plan(api(), id);
      expect((await read(api(), id)).continuation).toEqual({ mode: 'schedule', armRef: lent });
      expectRefusal(await api().request('DELETE', `${SCHEDULES}/${lent}`), 409, 'conflict');
    });

    it('has its arm taken away by a pause and given back after it', async () => {
      const id = await planned(api(), bySchedule, { schedule: { cron: '0 0 1 1 *' } });
      const first = (await read(api(), id)).continuation.armRef;
      const paused = await api().post(`${GOALS}/${id}/pause`);
      expect(paused.body.continuation.armRef).toBeNull();
      expectRefusal(await api().get(`${SCHEDULES}/${first}`), 404, 'not_found');
      const resumed = (await api().post(`${GOALS}/${id}/resume`)).body.continuation.armRef;
      expect((await api().get(`${SCHEDULES}/${resumed}`)).body.enabled).toBe(true);
      const moved = await api().request('PATCH', `${GOALS}/${id}`, { continuation: { mode: 'manual' } });
      expect(moved.body.continuation).toEqual({ mode: 'manual', armRef: null });
      expect((await schedules()).map(({ belongsTo }) => belongsTo)).not.toContain(`goal:${id}`);
      await api().request('PATCH', `${GOALS}/${id}`, { continuation: { mode: 'schedule' } });
      const abandoned = await api().post(`${GOALS}/${id}/abandon`);
      expect(abandoned.body.continuation.armRef).toBeNull();
      expect((await schedules()).map(({ belongsTo }) => belongsTo)).not.toContain(`goal:${id}`);
    });
  });

  describe('whose arm is spoken of by its name', () => {
    const rarely = { schedule: { cron: '0 0 1 1 *' } };
    const edit = (id: string, continuation: object): Promise<Answer> =>
      api().request('PATCH', `${GOALS}/${id}`, { continuation });

    it('takes none of another kind for it, and leaves nothing behind', async () => {
      const id = await planned(api(), { continuation: { mode: 'schedule' } }, rarely);
      const { armRef } = (await read(api(), id)).continuation;
      expectRefusal(await edit(id, { mode: 'heartbeat', armRef }), 422, 'validation_error');
      expect((await read(api(), id)).continuation).toEqual({ mode: 'schedule', armRef });
      await api().post(`${GOALS}/${id}/abandon`);
      expectRefusal(await api().get(`${SCHEDULES}/${armRef}`), 404, 'not_found');
    });

    it('goes on after a pause though somebody wrote back what they had read', async () => {
      const id = await planned(api(), { continuation: { mode: 'schedule' } }, rarely);
      const { continuation } = await read(api(), id);
      expect((await edit(id, continuation)).body.continuation).toEqual(continuation);
      await api().post(`${GOALS}/${id}/pause`);
      const resumed = await api().post(`${GOALS}/${id}/resume`);
      expect(resumed.status, resumed.text).toBe(200);
      expect((await api().get(`${SCHEDULES}/${resumed.body.continuation.armRef}`)).body.belongsTo).toBe(`goal:${id}`);
    });

    it('stays paused when the arm that it was lent is gone, until another is named', async () => {
      const armRef = (await api().post(SCHEDULES, { workflowId: counting.id, cron: '0 0 1 1 *' })).body.id;
      const { id } = await setGoal(api(), { continuation: { mode: 'schedule', armRef } });
      await api().post(`${GOALS}/${id}/pause`);
      await api().request('DELETE', `${SCHEDULES}/${armRef}`);
      expectRefusal(await api().post(`${GOALS}/${id}/resume`), 422, 'validation_error');
      expect((await evaluations(api(), id)).paused).toBe(true);
      await edit(id, { mode: 'manual' });
      expect((await api().post(`${GOALS}/${id}/resume`)).status).toBe(200);
    });

    it('goes on after a stop once a person names another, though the arm is gone', async () => {
      const armRef = (await api().post(SCHEDULES, { workflowId: counting.id, cron: '0 0 1 1 *' })).body.id;
      const id = await planned(api(), { continuation: { mode: 'schedule', armRef } }, { criteria: [] });
      await run(api(), id);
      await reaches(api(), id, 'escalated');
      expect((await api().request('DELETE', `${SCHEDULES}/${armRef}`)).status).toBe(204);
      expectRefusal(await api().post(`${GOALS}/${id}/resume`), 422, 'validation_error');
      expect((await edit(id, { mode: 'manual' })).body.continuation).toEqual({ mode: 'manual', armRef: null });
      expect((await api().post(`${GOALS}/${id}/resume`)).body.state).toBe('active');
      await run(api(), id);
    });
  });

  describe('that may cost so much', () => {
    it('gives each run what is left, and ends with the run that cannot pay any more', async () => {
      const bounds = { maxCostUsd: 0.023 };
      const id = await planned(api(), { bounds }, { workflowId: asking.id });
      const runs: Body[] = [];
      for (let count = 1; count <= 3; count++) {
        const runId = await run(api(), id);
        await judged(api(), id, count);
        runs.push((await api().get(`/v1/runs/${runId}`)).body);
      }
      expect(runs.map(({ configurable }) => configurable.budget.maxCostUsd)).toEqual([0.023, 0.013, 0.003]);
      expect(runs.map(({ status }) => status)).toEqual(['completed', 'completed', 'failed']);
      expect(runs[2].error.code).toBe('budget_exhausted');
      expect(await read(api(), id)).toMatchObject({ state: 'bound-exceeded', progress: { iterations: 3 } });
      const { costUsd, items } = await evaluations(api(), id);
      expect(costUsd).toBe(0.02);
      expect(items.map((item: Body) => item.costUsd)).toEqual([undefined, 0.01, 0.01]);
    });

    it('ends with the run that uses up the last of it', async () => {
      const id = await planned(
        api(),
        { bounds: { maxCostUsd: 0.02, maxLoopIterations: 9 } },
        { workflowId: asking.id },
      );
      await run(api(), id);
      await judged(api(), id, 1);
      await run(api(), id);
      const goal = await reaches(api(), id, 'bound-exceeded');
      expect(goal.progress.iterations).toBe(2);
    });

    it('pays for what its runs send for, one after the other, and no more than is left', async () => {
      const each = workflow([
        node('all', 'vendor.capstan.flow.for-each', {
          config: { workflowId: asking.id, concurrency: 4 },
          inputs: { array: fixed([1, 2, 3, 4]) },
        }),
      ]);
      await register(api(), each);
      const id = await planned(api(), { bounds: { maxCostUsd: 0.023 } }, { workflowId: each.id });
      const runId = await run(api(), id);
      const goal = await reaches(api(), id, 'bound-exceeded');
      expect(goal.progress.iterations).toBe(1);
      expect((await evaluations(api(), id)).costUsd).toBe(0.02);
      expect(await paidBelow(runId)).toEqual([
        ['completed', 0.023],
        ['completed', 0.013],
        ['failed', 0.003],
      ]);
    });

    it('pays its judge, too', async () => {
      const verifier = { id: unique('ver'), kind: 'model', rubric: 'It is done.', model: 'play/small' };
      expect((await api().post('/v1/host/capstan/verifiers', verifier)).status).toBe(201);
      const completion = { check: 'verifier', verifierRef: verifier.id };
      const id = await planned(api(), { completion, bounds: { maxCostUsd: 1 } }, { workflowId: asking.id });
      await run(api(), id);
      await reaches(api(), id, 'satisfied');
      const { costUsd, items } = await evaluations(api(), id);
      expect(costUsd).toBe(0.02);
      expect(items).toMatchObject([
        { satisfied: true, confidence: 0.9, judge: `${verifier.id}@1`, costUsd: 0.02, evidence: VERDICT.evidence },
      ]);
    });

    it('has one run at a time: no two may spend the same', async () => {
      const id = await planned(api(), { bounds: { maxCostUsd: 1 } }, { workflowId: asking.id, maxParallel: 5 });
      const answers = await Promise.all(Array.from({ length: 5 }, () => start(api(), id)));
      const refused = answers.filter(({ status }) => status === 409);
      expect(answers.filter(({ status }) => status === 201).length + refused.length).toBe(5);
      for (const { body } of refused) expect(body.details).toEqual({ state: 'active', reason: 'in-flight' });
      const snapshots = await Promise.all(
        answers
          .filter(({ status }) => status === 201)
          .map(async ({ body }) => (await api().ended(body.runId)).configurable.budget.maxCostUsd),
      );
      expect(new Set(snapshots).size).toBe(snapshots.length);
    });
  });

  it('has runs whose branches take turns in what they send for', async () => {
    const branches = workflow(
      ['one', 'two', 'three'].map((id) => node(id, 'core.subWorkflow', { config: { workflowId: asking.id } })),
    );
    await register(api(), branches);
    const runId = await api().run(branches.id, { configurable: { budget: { maxCostUsd: 0.035 } } });
    expect((await api().ended(runId)).status).toBe('completed');
    expect(await paidBelow(runId)).toEqual([
      ['completed', 0.035],
      ['completed', 0.025],
      ['completed', 0.015],
    ]);
    const consumed = (await api().events(runId)).filter(({ type }) => type === 'budget.consumed');
    expect(consumed.map(({ payload }) => payload.consumed)).toEqual([0.01, 0.02, 0.03]);
    const { body } = await api().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq: 0 });
    expect((await api().ended(body.runId)).status).toBe('completed');
    expect((await api().events(body.runId)).map(({ type }) => type)).not.toContain('replay.diverged');
  });

  // The host is started anew in the middle.
  describe('that has so much time', { concurrent: false }, () => {
    it('ends when it is over, also when the host was away in between', async () => {
      const id = await planned(api(), { bounds: { runTimeoutMs: 2_000 } });
      const { id: idle } = await setGoal(api(), { bounds: { runTimeoutMs: 1_000, maxLoopIterations: 3 } });
      await run(api(), id);
      await judged(api(), id, 1);
      await host.stop();
      host = await host.another();
      const goal = await reaches(api(), id, 'bound-exceeded');
      expect(goal.progress.iterations).toBe(1);
      const { deadlineAt } = await evaluations(api(), id);
      expect(Date.parse(goal.updatedAt)).toBeGreaterThanOrEqual(Date.parse(deadlineAt));
      await reaches(api(), idle, 'bound-exceeded');
      for (const each of [id, idle]) {
        const closed = (await told(api(), each)).filter(({ type }) => type === 'goal.closed');
        expect(closed).toHaveLength(1);
      }
      expectRefusal(await start(api(), id), 409, 'conflict');
    });

    it('that is none ends at once', async () => {
      const { id } = await setGoal(api(), { bounds: { runTimeoutMs: 0 } });
      await reaches(api(), id, 'bound-exceeded');
    });
  });

  it('is judged once, though the host dies before the verdict is there', { concurrent: false }, async () => {
    const id = await planned(api(), {}, { criteria: [never] });
    const runId = await run(api(), id);
    await host.stop();
    host = await host.another();
    await judged(api(), id, 1);
    const { items } = await evaluations(api(), id);
    expect(items.map((item: Body) => item.runId)).toEqual([runId]);
    expect((await told(api(), id)).map(({ type }) => type)).toEqual(['goal.evaluated']);
  });

  it('is told to webhooks, by what it comes to and never by how the run goes that tells of it', async () => {
    const receiver = await Receiver.open();
    const events = ['goal.evaluated', 'goal.closed', 'run.started', 'run.completed'];
    const { body } = await api().post('/v1/webhooks', { url: receiver.url, events });
    const id = await planned(api(), { bounds: { maxLoopIterations: 1 } });
    const runId = await run(api(), id);
    // Goals of other tests close meanwhile.
    const isItsEnd = ({ type, event }: Body): boolean => type === 'goal.closed' && event.payload.goalId === id;
    await receiver.until((arrivals) => arrivals.some((arrival) => isItsEnd(arrival.body)));
    await api().request('DELETE', `/v1/webhooks/${body.webhookId}`);
    receiver.close();
    const { managementRunId } = await evaluations(api(), id);
    const its = receiver.arrivals.filter((arrival) => arrival.body.runId === managementRunId);
    expect(its.map((arrival) => [arrival.body.type, arrival.body.event.payload])).toEqual([
      ['goal.evaluated', { goalId: id, satisfied: false, runId, iterations: 1 }],
      ['goal.closed', { goalId: id, finalState: 'bound-exceeded' }],
    ]);
  });

  it('is told to whoever watches the tenant', async () => {
    const stream = await Stream.open(`${host.url}/v1/host/capstan/events`, KEYS.viewer.key);
    const id = await planned(api(), { bounds: { maxLoopIterations: 1 } });
    await run(api(), id);
    const its = (): Frame[] =>
      stream.frames.filter(({ event, data }) => event?.startsWith('goal.') && data!.includes(id));
    await stream.until(() => its().some(({ event }) => event === 'goal.closed'));
    stream.drop();
    const told = its().map(({ event, data }) => {
      const { state, satisfied, finalState } = JSON.parse(data!);
      return [event, satisfied ?? finalState ?? state];
    });
    expect(told).toEqual([
      ['goal.updated', 'active'],
      ['goal.updated', 'active'],
      ['goal.updated', 'active'],
      ['goal.evaluated', false],
      ['goal.updated', 'bound-exceeded'],
      ['goal.closed', 'bound-exceeded'],
    ]);
    expect(JSON.stringify(its())).not.toContain('checklist');
  });
});

describe.concurrent('a goal on two hosts', () => {
  it('has exactly as many runs as it may have, whichever host is asked', async () => {
    const one = await startTestHost('postgres', inject('postgresUrl'));
    const two = await one.another();
    try {
      const [here, there] = [one.as('editor'), two.as('editor')];
      await registerCounting(here);
      const id = await planned(here, { bounds: { maxLoopIterations: 3 } });
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, index) => start(index % 2 === 0 ? here : there, id)),
      );
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(3);
      expect(answers.filter(({ status }) => status === 409)).toHaveLength(9);
      const goal = await reaches(there, id, 'bound-exceeded');
      expect(goal.progress.contributingRunIds).toHaveLength(3);
      expect(await told(here, id)).toHaveLength(4);
    } finally {
      await two.stop();
      await one.stop();
    }
  });
});

describe.concurrent('a goal whose host is killed', () => {
  const { start, follow, kill, newStore } = killableHosts();

  it('has its runs and its verdicts once each, whenever that happens', async () => {
    const store = await newStore('sqlite');
    const killed = await start(store);
    await registerCounting(killed.as('editor'));
    const id = await planned(
      killed.as('editor'),
      { continuation: { mode: 'schedule' }, bounds: { maxLoopIterations: 3 } },
      { schedule: { cron: EVERY_SECOND } },
    );
    await until(
      () => evaluations(killed.as('editor'), id),
      ({ runsStarted }) => runsStarted > 0,
    );
    await kill(killed);
    const api = (await follow(store)).as('editor');
    const goal = await reaches(api, id, 'bound-exceeded');
    expect(goal.progress.contributingRunIds).toHaveLength(3);
    const { body } = await api.get(`/v1/host/capstan/runs?limit=200&tag=goal:${id}`);
    expect(body.items).toHaveLength(3);
    const log = (await told(api, id)).map(({ type, payload }) => payload.runId ?? type);
    expect(log).toEqual([...goal.progress.contributingRunIds, 'goal.closed']);
  });
});
