import { beforeAll, describe, expect, it } from 'vitest';
import type { Api } from '../support/api.ts';
import { freshFolder } from '../support/database.ts';
import { fixed, line, node, register, unique, workflow } from '../support/definitions.ts';
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
import { startTestHost } from '../support/host.ts';
import { eventsOf, interrupt, resolve, waits } from '../support/interrupts.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onEachStore } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** Standing goals over the wire: what may be written, who decides, where they stop and what is kept of it. */

const { goal: fits, payload } = loadSchemas();
const SETTINGS = { goals: { standstillMax: 3, judgeTries: 2, judgeRetryMs: 20 } };

/** A workflow whose only node is too unsure to go on by itself. */
const unsure = workflow([interrupt('ask', 'low-confidence', { agentId: 'acme.agent', threshold: 0.7, observed: 0.2 })]);
const waiting = workflow([node('wait', 'core.approvalGate', { config: { title: 'Wait' } })]);

onEachStore(
  'a goal',
  (host) => {
    const api = (): Api => host().as('editor');
    beforeAll(async () => {
      await registerCounting(api());
      await register(api(), unsure);
      await register(api(), waiting);
    });

    describe('is written down', () => {
      it('as the protocol has it, with who set it, and nothing besides', async () => {
        const made = await setGoal(api(), { bounds: { maxLoopIterations: 7, maxCostUsd: 5, runTimeoutMs: 600_000 } });
        expect(fits(made)).toEqual([]);
        expect(made).toEqual({
          id: expect.stringMatching(/^goal-[0-9a-z]{16,}$/),
          objective: 'Finish the checklist',
          state: 'active',
          completion: { check: 'host', verifierRef: null, lastVerdict: null },
          continuation: { mode: 'manual', armRef: null },
          bounds: { maxLoopIterations: 7, maxCostUsd: 5, runTimeoutMs: 600_000 },
          progress: { iterations: 0, contributingRunIds: [] },
          owner: { tenant: 'alpha', principal: 'editor-of-alpha' },
          createdAt: expect.any(String),
          updatedAt: made.createdAt,
        });
        expect(await read(api(), made.id)).toEqual(made);
        expect(await evaluations(api(), made.id)).toMatchObject({
          goalId: made.id,
          paused: false,
          costUsd: 0,
          deadlineAt: new Date(Date.parse(made.createdAt) + 600_000).toISOString(),
          objectiveVersion: 1,
          items: [],
        });
      });

      it('at the path of the draft as at its own', async () => {
        const made = await setGoal(api());
        for (const path of [GOALS, '/v1/host/sample/goals']) {
          expect((await api().get(`${path}/${made.id}`)).body).toEqual(made);
          const { body } = await api().get(`${path}?state=active&limit=200`);
          expect(body.goals).toContainEqual(made);
        }
      });

      it.each<[string, object]>([
        ['more time than there is', { runTimeoutMs: Number.MAX_SAFE_INTEGER }],
        ['more time than can be written', { runTimeoutMs: 1e300 }],
        ['more money than there is', { maxCostUsd: 1e308 }],
        ['more runs than there can be', { maxLoopIterations: 1e300 }],
      ])('with %s', async (_what, bounds) => {
        const { id } = await setGoal(api(), { bounds });
        await plan(api(), id);
        const runId = await run(api(), id);
        await judged(api(), id, 1);
        expect(await read(api(), id)).toMatchObject({ state: 'active', bounds });
        expect(await evaluations(api(), id)).toMatchObject({ goalId: id, runsStarted: 1 });
        const { configurable } = await api().ended(runId);
        if ('maxCostUsd' in bounds) expect(configurable.budget).toEqual(bounds);
      });

      it('in whatever characters there are', async () => {
        for (const objective of ['a\u0000b', 'a\ud800b', '💡 \u202e']) {
          const made = await setGoal(api(), { objective });
          await api().request('PATCH', `${GOALS}/${made.id}`, { objective: `${objective}!` });
          expect((await evaluations(api(), made.id)).objectives).toHaveLength(2);
        }
      });

      it('once for each idempotency key', async () => {
        const body = {
          objective: 'Once',
          completion: { check: 'host' },
          continuation: { mode: 'manual' },
          bounds: { maxLoopIterations: 1 },
        };
        const headers = { 'idempotency-key': unique('key') };
        const [first, second] = [await api().post(GOALS, body, headers), await api().post(GOALS, body, headers)];
        expect(second.body).toEqual(first.body);
      });

      it('without secrets', async () => {
        const secret = 'sk-canary-goals-do-not-leak-abc123';
        const made = await setGoal(api(), { objective: `Use ${secret} to finish` });
        await plan(api(), made.id, { inputs: { note: secret } });
        const texts = await Promise.all(
          [`${GOALS}/${made.id}`, `${PLANS}/${made.id}/plan`, `${PLANS}/${made.id}/evaluations`].map((path) =>
            api().get(path),
          ),
        );
        for (const { text } of texts) expect(text).not.toContain('canary');
      });

      it.each<[string, unknown]>([
        ['no bounds', undefined],
        ['empty bounds', {}],
        ['bounds that are none', { maxIterations: 3 }],
        ['a bound of nothing', { maxLoopIterations: 0 }],
        ['a bound that is no number', { maxCostUsd: '5' }],
      ])('but not with %s, whatever else is wrong with it', async (_what, bounds) => {
        for (const rest of [{ completion: { check: 'host' }, continuation: { mode: 'manual' } }, { nonsense: true }]) {
          const answer = await api().post('/v1/host/sample/goals', { objective: 'x', ...rest, bounds });
          expectRefusal(answer, 422, 'validation_error');
        }
      });

      it.each<[string, number, object]>([
        ['without an objective', 400, { objective: undefined }],
        ['with an empty one', 400, { objective: '' }],
        ['with a judge that there is not', 400, { completion: { check: 'me' } }],
        ['with a way of going on that there is not', 400, { continuation: { mode: 'hope' } }],
        ['without a way of going on', 400, { continuation: undefined }],
        ['with an owner of its own choosing', 400, { owner: { tenant: 'beta' } }],
        ['satisfied from the start', 422, { state: 'satisfied' }],
        ['with progress', 422, { progress: { iterations: 2 } }],
        ['with a verdict', 422, { completion: { check: 'host', lastVerdict: { satisfied: true } } }],
        ['with a verifier that is not named', 422, { completion: { check: 'verifier' } }],
        ['with a verifier that is not there', 422, { completion: { check: 'verifier', verifierRef: 'absent' } }],
        ['with a schedule that is not there', 422, { continuation: { mode: 'schedule', armRef: 'absent' } }],
      ])('but not %s', async (_what, status, body) => {
        const answer = await api().post(GOALS, {
          objective: 'x',
          completion: { check: 'host' },
          continuation: { mode: 'manual' },
          bounds: { maxLoopIterations: 1 },
          ...body,
        });
        expectRefusal(answer, status, 'validation_error');
      });

      it('for those who may see it', async () => {
        const { id } = await setGoal(api());
        const others = [host().as('other'), host().as('workspace')];
        for (const other of others) {
          expectRefusal(await other.get(`${GOALS}/${id}`), 404, 'not_found');
          expectRefusal(await other.request('PATCH', `${GOALS}/${id}`, { objective: 'Mine' }), 404, 'not_found');
          for (const verb of ['pause', 'resume', 'abandon']) {
            expectRefusal(await other.post(`${GOALS}/${id}/${verb}`), 404, 'not_found');
          }
          expectRefusal(await start(other, id), 404, 'not_found');
          expectRefusal(await other.get(`${PLANS}/${id}/evaluations`), 404, 'not_found');
          expect((await other.get(GOALS)).text).not.toContain(id);
        }
        expectRefusal(await host().as('viewer').post(`${GOALS}/${id}/pause`), 403, 'forbidden');
        expect((await host().as('viewer').get(`${GOALS}/${id}`)).status).toBe(200);
      });
    });

    describe('is changed', () => {
      const edit = (id: string, body: object, method = 'PATCH') => api().request(method, `${GOALS}/${id}`, body);

      it.each(['PATCH', 'POST'])('by %s never to what only a judge or a bound can make of it', async (method) => {
        const made = await setGoal(api());
        const claims = [
          { state: 'satisfied' },
          { state: 'escalated' },
          { state: 'bound-exceeded' },
          { state: 'active' },
          { objective: 'New', state: 'satisfied' },
          { progress: { iterations: 9 } },
          { completion: { check: 'host', lastVerdict: { satisfied: true } } },
          { bounds: { maxLoopIterations: 99 } },
        ];
        for (const claim of claims) expectRefusal(await edit(made.id, claim, method), 422, 'validation_error');
        expectRefusal(await edit(made.id, { nonsense: 1 }, method), 400, 'validation_error');
        expect(await read(api(), made.id)).toEqual(made);
      });

      it('in what it is about, and every wording is kept', async () => {
        const { id } = await setGoal(api());
        const { body } = await edit(id, { objective: 'Finish half of it' });
        expect(body.objective).toBe('Finish half of it');
        await edit(id, { objective: 'Finish half of it' });
        expect(await evaluations(api(), id)).toMatchObject({
          objectiveVersion: 2,
          objectives: [
            { version: 1, objective: 'Finish the checklist', by: 'editor-of-alpha' },
            { version: 2, objective: 'Finish half of it', by: 'editor-of-alpha' },
          ],
        });
      });

      it('no more once it is over', async () => {
        const id = await planned(api());
        const { body: abandoned } = await api().post(`${GOALS}/${id}/abandon`);
        expect(abandoned.state).toBe('abandoned');
        for (const verb of ['pause', 'resume', 'abandon']) {
          const refused = await api().post(`${GOALS}/${id}/${verb}`);
          expectRefusal(refused, 409, 'conflict');
          expect(refused.body.details.state).toBe('abandoned');
          expect(refused.body.message).toContain('To go on, create a new goal');
        }
        expectRefusal(await edit(id, { objective: 'Again' }), 409, 'conflict');
        const body = { workflowId: counting.id, criteria: [] };
        expectRefusal(await api().request('PUT', `${PLANS}/${id}/plan`, body), 409, 'conflict');
        const refused = await start(api(), id);
        expectRefusal(refused, 409, 'conflict');
        expect(refused.body.details.state).toBe('abandoned');
        expect((await told(api(), id)).map(({ payload: { finalState } }) => finalState)).toEqual(['abandoned']);
        expect(await read(api(), id)).toEqual({ ...abandoned });
      });
    });

    describe('is worked on', () => {
      it('by a plan that makes sense', async () => {
        const { id } = await setGoal(api());
        expectRefusal(await api().get(`${PLANS}/${id}/plan`), 404, 'not_found');
        const refused = await start(api(), id);
        expectRefusal(refused, 409, 'conflict');
        const put = (body: object) =>
          api().request('PUT', `${PLANS}/${id}/plan`, { workflowId: counting.id, criteria: [never], ...body });
        expectRefusal(await put({ workflowId: 'absent' }), 400, 'validation_error');
        expectRefusal(await put({ criteria: [{ key: 'a', expression: 'outputs.work >' }] }), 400, 'validation_error');
        expectRefusal(await put({ criteria: [never, never] }), 400, 'validation_error');
        expectRefusal(await put({ satisfied: true }), 400, 'validation_error');
        const reads = (expression: string) => put({ criteria: [never, { key: 'done', expression }] });
        expect((await reads('outputs.wrok.iteration >= 2')).body).toMatchObject({
          message: 'criteria.1.expression: Unknown node "wrok". Did you mean "work"?',
          details: { field: 'criteria.1.expression' },
        });
        expect((await reads('outputs.work.done == true')).body).toMatchObject({
          message: 'criteria.1.expression: The node "work" has no output "done". It has iteration, told.',
        });
        for (const careful of ['has(outputs.other)', 'outputs.?other.done.orValue(false)', 'run.status == "completed"'])
          expect((await reads(careful)).status, careful).toBe(200);
        const stored = await plan(api(), id, { inputs: { a: 1 } });
        expect((await api().get(`${PLANS}/${id}/plan`)).body).toEqual(stored);
      });

      it('by runs that know how far it has come', async () => {
        const id = await planned(api(), {}, { inputs: { region: 'eu' } });
        const first = await run(api(), id);
        await judged(api(), id, 1);
        const { body } = await start(api(), id, { inputs: { extra: true } });
        expect(body.eventsUrl).toBe(`${host().url}/v1/runs/${body.runId}/events`);
        const snapshot = await api().ended(body.runId);
        expect(snapshot).toMatchObject({ tags: [`goal:${id}`], metadata: { goalId: id, iteration: 2 } });
        expect(snapshot.inputs).toEqual({
          region: 'eu',
          extra: true,
          goal: {
            id,
            objective: 'Finish the checklist',
            iteration: 2,
            lastVerdict: { satisfied: false, runId: first },
            openCriteria: ['never'],
          },
        });
      });

      it('until a criterion is met: there it closes, whatever was left', async () => {
        const id = await planned(api(), { bounds: { maxLoopIterations: 3 } }, { criteria: [onThird] });
        const runs: string[] = [];
        for (let count = 1; count <= 3; count++) {
          runs.push(await run(api(), id));
          await judged(api(), id, count);
        }
        const goal = await read(api(), id);
        expect(fits(goal)).toEqual([]);
        expect(goal).toMatchObject({
          state: 'satisfied',
          completion: { lastVerdict: { satisfied: true, runId: runs[2] } },
          progress: { iterations: 3, contributingRunIds: runs },
        });
        const { items } = await evaluations(api(), id);
        expect(items.map(({ runId, satisfied }: { runId: string; satisfied: boolean }) => [runId, satisfied])).toEqual(
          runs.map((runId, index) => [runId, index === 2]).reverse(),
        );
        expect(items[0]).toMatchObject({
          judge: 'host:criteria',
          objectiveVersion: 1,
          evidence: [{ key: 'third', met: true }],
        });
        const events = await told(api(), id);
        for (const event of events) expect(payload(event.type)!(event.payload)).toEqual([]);
        expect(events.map(({ type, payload: told }) => [type, told.satisfied ?? told.finalState])).toEqual([
          ['goal.evaluated', false],
          ['goal.evaluated', false],
          ['goal.evaluated', true],
          ['goal.closed', 'satisfied'],
        ]);
        expect(JSON.stringify(events)).not.toContain('checklist');
        expectRefusal(await start(api(), id), 409, 'conflict');
      });

      it('by exactly as many runs as it may have, however many are asked for at once', async () => {
        const id = await planned(api(), { bounds: { maxLoopIterations: 3 } });
        const answers = await Promise.all(Array.from({ length: 12 }, () => start(api(), id)));
        expect(answers.filter(({ status }) => status === 201)).toHaveLength(3);
        const refused = answers.filter(({ status }) => status !== 201);
        for (const answer of refused) expectRefusal(answer, 409, 'conflict');
        const goal = await reaches(api(), id, 'bound-exceeded');
        expect(goal.progress.iterations).toBe(3);
        const closed = (await told(api(), id)).filter(({ type }) => type === 'goal.closed');
        expect(closed.map(({ payload: { finalState } }) => finalState)).toEqual(['bound-exceeded']);
        const { body } = await api().get(`/v1/host/capstan/runs?limit=200&tag=goal:${id}`);
        expect(body.items).toHaveLength(3);
      });

      it('not while it is paused, and a verdict counts all the same', async () => {
        const id = await planned(
          api(),
          {},
          { workflowId: waiting.id, criteria: [{ key: 'done', expression: 'true' }] },
        );
        const runId = await run(api(), id);
        await waits(api(), runId);
        expect((await api().post(`${GOALS}/${id}/pause`)).body.state).toBe('active');
        expectRefusal(await api().post(`${GOALS}/${id}/pause`), 409, 'conflict');
        expect((await evaluations(api(), id)).paused).toBe(true);
        const refused = await start(api(), id);
        expectRefusal(refused, 409, 'conflict');
        expect(refused.body.details).toEqual({ state: 'active', reason: 'paused' });
        await resolve(api(), runId, 'wait', { action: 'accept' });
        await reaches(api(), id, 'satisfied');
      });

      it('again once it is resumed', async () => {
        const id = await planned(api());
        await api().post(`${GOALS}/${id}/pause`);
        expect((await api().post(`${GOALS}/${id}/resume`)).status).toBe(200);
        expectRefusal(await api().post(`${GOALS}/${id}/resume`), 409, 'conflict');
        await run(api(), id);
      });

      it('by its own runs alone: neither a fork nor a look-alike counts', async () => {
        const id = await planned(api(), {}, { criteria: [{ key: 'done', expression: 'true' }] });
        await plan(api(), id, { criteria: [never] });
        const runId = await run(api(), id);
        await judged(api(), id, 1);
        const replay = await api().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq: 0 });
        const branch = await api().post(`/v1/runs/${runId}:fork`, { mode: 'branch', fromSeq: 0 });
        const twin = await api().run(counting.id, { metadata: { goalId: id }, inputs: { goal: { iteration: 9 } } });
        for (const other of [replay.body.runId, branch.body.runId, twin]) await api().ended(other);
        const next = await run(api(), id);
        const goal = await judged(api(), id, 2);
        expect(goal.progress.contributingRunIds).toEqual([runId, next]);
        expect(await told(api(), id)).toHaveLength(2);
      });
    });

    describe('stops for a person', () => {
      it('when a run of it is unsure, and goes on with the answer', async () => {
        const id = await planned(api(), {}, { workflowId: unsure.id });
        const runId = await run(api(), id);
        await waits(api(), runId);
        await reaches(api(), id, 'escalated');
        expect((await evaluations(api(), id)).escalation).toMatchObject({ reason: 'low-confidence', runId });
        const { body } = await api().get('/v1/host/capstan/inbox?limit=200');
        expect(body.items).toContainEqual(
          expect.objectContaining({ kind: 'goal', id, goalId: id, link: `/console/goals/${id}` }),
        );
        const refused = await start(api(), id);
        expectRefusal(refused, 409, 'conflict');
        expect(refused.body.details.state).toBe('escalated');
        await resolve(api(), runId, 'ask', { answer: 'go on' });
        const goal = await judged(api(), id, 1);
        expect(goal.state).toBe('active');
        const { items } = (await api().get('/v1/host/capstan/inbox?limit=200')).body;
        expect(items.filter(({ goalId }: { goalId: string }) => goalId === id)).toMatchObject([
          { title: 'Waits to be started: Finish the checklist' },
        ]);
        expect((await told(api(), id)).map(({ type }) => type)).toEqual(['goal.closed', 'goal.evaluated']);
      });

      it('also when the unsure one is an agent', async () => {
        const id = await planned(api(), {}, { workflowId: 'conformance-agent-low-confidence' });
        const runId = await run(api(), id);
        await reaches(api(), id, 'escalated');
        expect((await evaluations(api(), id)).escalation).toMatchObject({ reason: 'low-confidence', runId });
        const [{ nodeId }] = await eventsOf(api(), runId, 'node.suspended');
        await resolve(api(), runId, nodeId, { action: 'accept' });
        await reaches(api(), id, 'active');
      });

      it('also when the unsure one gives up before anybody answers: silence is no answer', async () => {
        const brief = workflow([
          interrupt(
            'ask',
            'low-confidence',
            { agentId: 'acme.agent', threshold: 0.7, observed: 0.2 },
            { timeoutMs: 20 },
          ),
        ]);
        await register(api(), brief);
        const id = await planned(api(), {}, { workflowId: brief.id });
        const runId = await run(api(), id);
        expect((await api().ended(runId)).status).toBe('failed');
        await reaches(api(), id, 'escalated');
        await api().post(`/v1/runs/${runId}/annotations`, { signal: { kind: 'flag' } });
        expect((await read(api(), id)).progress.iterations).toBe(0);
        await api().post(`${GOALS}/${id}/resume`);
        expect(await judged(api(), id, 1)).toMatchObject({
          state: 'active',
          progress: { contributingRunIds: [runId] },
        });
        expect((await told(api(), id)).map(({ type }) => type)).toEqual(['goal.closed', 'goal.evaluated']);
      });

      it('also when the unsure one is a run that its run sent for', async () => {
        const parent = workflow([node('sub', 'core.subWorkflow', { config: { workflowId: unsure.id } })]);
        await register(api(), parent);
        const id = await planned(api(), {}, { workflowId: parent.id });
        const runId = await run(api(), id);
        await reaches(api(), id, 'escalated');
        expect((await evaluations(api(), id)).escalation).toMatchObject({ reason: 'low-confidence', runId });
        const { childRuns } = await api().until(runId, (snapshot) => 'childRuns' in snapshot);
        await resolve(api(), childRuns[0].runId, 'ask', { answer: 'go on' });
        expect((await judged(api(), id, 1)).state).toBe('active');
      });

      it('and goes on when told to, once for each question', async () => {
        const id = await planned(api(), {}, { workflowId: unsure.id });
        const runId = await run(api(), id);
        await reaches(api(), id, 'escalated');
        const note = 'Look at the second page first.';
        const { body } = await api().post(`${GOALS}/${id}/resume`, { note });
        expect(body.state).toBe('active');
        expect((await evaluations(api(), id)).note).toMatchObject({ text: note, by: 'editor-of-alpha' });
        await plan(api(), id);
        const next = await run(api(), id);
        expect((await api().ended(next)).inputs.goal.note).toBe(note);
        const goal = await judged(api(), id, 1);
        expect(goal).toMatchObject({ state: 'active', progress: { contributingRunIds: [next] } });
        await resolve(api(), runId, 'ask', { answer: 'late' });
        await judged(api(), id, 2);
      });

      it('and has what ended meanwhile judged when it goes on', async () => {
        const id = await planned(api(), {}, { workflowId: waiting.id });
        const other = await run(api(), id);
        await waits(api(), other);
        await plan(api(), id, { workflowId: unsure.id });
        await run(api(), id);
        await reaches(api(), id, 'escalated');
        await resolve(api(), other, 'wait', { action: 'accept' });
        await api().ended(other);
        expect((await read(api(), id)).progress.iterations).toBe(0);
        await api().post(`${GOALS}/${id}/resume`);
        expect((await judged(api(), id, 1)).progress.contributingRunIds).toEqual([other]);
      });

      it('when the judge cannot decide, however often it is asked', async () => {
        const id = await planned(api(), {}, { criteria: [] });
        const runId = await run(api(), id);
        const goal = await reaches(api(), id, 'escalated');
        expect(goal.completion.lastVerdict).toEqual({ satisfied: false, runId });
        const { escalation, items } = await evaluations(api(), id);
        expect(escalation).toMatchObject({ reason: 'undecided', runId, detail: expect.any(String) });
        expect(items).toMatchObject([{ satisfied: false, undecided: expect.any(String), evidence: [] }]);
      });

      it('when it makes no progress', async () => {
        const id = await planned(api(), { bounds: { maxLoopIterations: 9 } });
        for (let count = 1; count <= 3; count++) {
          await run(api(), id);
          await judged(api(), id, count);
        }
        await reaches(api(), id, 'escalated');
        expect((await evaluations(api(), id)).escalation.reason).toBe('no-progress');
        expect((await api().post(`${GOALS}/${id}/resume`)).body.state).toBe('active');
        await run(api(), id);
        expect((await judged(api(), id, 4)).state).toBe('active');
      });

      it('and may be given up there, which closes it', async () => {
        const id = await planned(api(), {}, { criteria: [] });
        await run(api(), id);
        await reaches(api(), id, 'escalated');
        expect((await api().post(`${GOALS}/${id}/abandon`)).body.state).toBe('abandoned');
        const closed = (await told(api(), id)).filter(({ type }) => type === 'goal.closed');
        expect(closed.map(({ payload: { finalState } }) => finalState)).toEqual(['escalated', 'abandoned']);
      });
    });

    describe('is judged', () => {
      it('by the verifier that it names, in the version that it has then', async () => {
        const verifier = { id: unique('ver'), kind: 'criteria', criteria: [{ key: 'done', expression: 'true' }] };
        const put = (body: object) => api().post('/v1/host/capstan/verifiers', body);
        await put({ ...verifier, criteria: [never] });
        const completion = { check: 'verifier', verifierRef: verifier.id };
        const id = await planned(api(), { completion });
        await run(api(), id);
        await judged(api(), id, 1);
        await put(verifier);
        await run(api(), id);
        await reaches(api(), id, 'satisfied');
        const { items, managementRunId } = await evaluations(api(), id);
        expect(items.map(({ judge }: { judge: string }) => judge)).toEqual([`${verifier.id}@2`, `${verifier.id}@1`]);
        const events = await api().events(managementRunId);
        const verdicts = events.filter(({ type }) => type === 'agent.verified');
        expect(verdicts.map(({ payload: { agentId, target, verdict } }) => [agentId, target, verdict])).toEqual([
          [`${verifier.id}@1`, items[1].runId, 'fail'],
          [`${verifier.id}@2`, items[0].runId, 'pass'],
        ]);
        for (const verdict of verdicts) expect(payload(verdict.type)!(verdict.payload)).toEqual([]);
        const evaluated = events.filter(({ type }) => type === 'goal.evaluated');
        expect(evaluated.map(({ causationId }) => causationId)).toEqual(verdicts.map(({ eventId }) => eventId));
      });

      it('by a run of its own where the verifier is a workflow', async () => {
        const judge = workflow([
          node('verdict', 'core.identity', {
            inputs: {
              satisfied: { type: 'expression', expression: 'inputs.run.variables == inputs.run.variables' },
              evidence: { type: 'static', value: [{ key: 'seen', met: true }] },
            },
          }),
        ]);
        await register(api(), judge);
        const verifier = { id: unique('ver'), kind: 'workflow', workflowId: judge.id };
        expect((await api().post('/v1/host/capstan/verifiers', verifier)).status).toBe(201);
        const id = await planned(api(), { completion: { check: 'verifier', verifierRef: verifier.id } });
        await run(api(), id);
        await reaches(api(), id, 'satisfied');
        expect((await evaluations(api(), id)).items).toMatchObject([
          { judge: `${verifier.id}@1`, evidence: [{ key: 'seen', met: true }] },
        ]);
      });

      it('by the objective that it had then', async () => {
        const id = await planned(api());
        await run(api(), id);
        await judged(api(), id, 1);
        await api().request('PATCH', `${GOALS}/${id}`, { objective: 'Something easier' });
        await run(api(), id);
        await judged(api(), id, 2);
        const { items } = await evaluations(api(), id);
        expect(items.map(({ objectiveVersion }: { objectiveVersion: number }) => objectiveVersion)).toEqual([2, 1]);
      });

      /** A goal whose judge thinks until somebody lets it answer, which is yes; and the runs in which it does. */
      async function slowlyJudged() {
        const judge = workflow(
          [
            node('wait', 'core.approvalGate', { config: { title: 'Think' } }),
            node('verdict', 'core.identity', { inputs: { satisfied: fixed(true) } }),
          ],
          line('wait', 'verdict'),
        );
        await register(api(), judge);
        const verifier = { id: unique('ver'), kind: 'workflow', workflowId: judge.id };
        await api().post('/v1/host/capstan/verifiers', verifier);
        const id = await planned(api(), { completion: { check: 'verifier', verifierRef: verifier.id } });
        await run(api(), id);
        const runs = async (): Promise<string[]> => {
          const { body } = await api().get(`/v1/host/capstan/runs?workflowId=${judge.id}`);
          return body.items.map(({ runId }: { runId: string }) => runId);
        };
        const judging = async (count: number): Promise<string> => {
          const [latest] = await until(runs, ({ length }) => length === count);
          await waits(api(), latest!);
          return latest!;
        };
        return { id, judging };
      }

      it('again where it has become another while a run was judging', async () => {
        const { id, judging } = await slowlyJudged();
        const first = await judging(1);
        await api().request('PATCH', `${GOALS}/${id}`, { objective: 'Something else' });
        await resolve(api(), first, 'wait', { action: 'accept' });
        const second = await judging(2);
        expect((await read(api(), id)).state).toBe('active');
        await resolve(api(), second, 'wait', { action: 'accept' });
        await reaches(api(), id, 'satisfied');
        expect((await evaluations(api(), id)).items).toMatchObject([{ satisfied: true, objectiveVersion: 2 }]);
      });

      it('by the judge that it has then, though another was asked before', async () => {
        const { id, judging } = await slowlyJudged();
        const first = await judging(1);
        await api().request('PATCH', `${GOALS}/${id}`, { completion: { check: 'host' } });
        await resolve(api(), first, 'wait', { action: 'accept' });
        expect((await judged(api(), id, 1)).state).toBe('active');
        expect((await evaluations(api(), id)).items).toMatchObject([{ satisfied: false, judge: 'host:criteria' }]);
      });

      it('page by page, latest first', async () => {
        const id = await planned(api());
        for (let count = 1; count <= 3; count++) {
          await run(api(), id);
          await judged(api(), id, count);
        }
        const { items } = await evaluations(api(), id);
        const first = (await api().get(`${PLANS}/${id}/evaluations?limit=2`)).body;
        const second = (await api().get(`${PLANS}/${id}/evaluations?limit=2&cursor=${first.nextCursor}`)).body;
        expect([...first.items, ...second.items]).toEqual(items);
        expect(second.nextCursor).toBeUndefined();
      });
    });

    describe('is disputed', () => {
      it('by people who contradict a verdict, until somebody has looked into it', async () => {
        const id = await planned(api(), {}, { criteria: [{ key: 'done', expression: 'true' }] });
        const runId = await run(api(), id);
        await reaches(api(), id, 'satisfied');
        const say = (signal: object) => api().post(`/v1/runs/${runId}/annotations`, { signal });
        await say({ kind: 'rating', rating: 5 });
        expect((await evaluations(api(), id)).items[0]).not.toHaveProperty('disputedBy');
        await say({ kind: 'flag' });
        expect((await evaluations(api(), id)).items[0]).toMatchObject({
          satisfied: true,
          disputedBy: 'editor-of-alpha',
        });
        const inbox = async () => (await api().get('/v1/host/capstan/inbox?limit=200')).body.items;
        expect(await inbox()).toContainEqual(expect.objectContaining({ kind: 'dispute', runId, goalId: id }));
        expect((await read(api(), id)).state).toBe('satisfied');
        await say({ kind: 'label', label: 'reviewed' });
        expect(await inbox()).not.toContainEqual(expect.objectContaining({ kind: 'dispute', runId }));
        expect((await evaluations(api(), id)).items[0].disputedBy).toBe('editor-of-alpha');
      });

      it('and how often people agree is counted for each judge', async () => {
        const verifier = { id: unique('ver'), kind: 'criteria', criteria: [never] };
        await api().post('/v1/host/capstan/verifiers', verifier);
        const id = await planned(api(), { completion: { check: 'verifier', verifierRef: verifier.id } });
        const signals = [
          { kind: 'flag' },
          { kind: 'label', label: 'satisfied' },
          { kind: 'label', label: 'unrelated' },
        ];
        for (const [index, signal] of signals.entries()) {
          const runId = await run(api(), id);
          await judged(api(), id, index + 1);
          await api().post(`/v1/runs/${runId}/annotations`, { signal });
        }
        const { body } = await api().get(`${PLANS}/calibration`);
        expect(body.items).toContainEqual({
          judge: `${verifier.id}@1`,
          verdicts: 3,
          agreed: 1,
          disputed: 1,
          agreementRate: 0.5,
        });
        const other = await host().as('other').get(`${PLANS}/calibration`);
        expect(other.text).not.toContain(verifier.id);
      });
    });

    it('is advertised with what it really does', async () => {
      const { body } = await host().anonymous.get('/.well-known/openwop');
      expect(body.agents.goals).toEqual({
        judge: 'verifier',
        continuation: expect.arrayContaining(['schedule', 'heartbeat', 'commitment', 'manual']),
        requiresBounds: true,
      });
    });

    it('is in the audit log with who did what', async () => {
      const id = await planned(api());
      await run(api(), id);
      await judged(api(), id, 1);
      await api().post(`${GOALS}/${id}/abandon`);
      const { body } = await api().get('/v1/host/capstan/audit?limit=200');
      const its = body.items.filter(({ target }: { target?: string }) => target === id);
      expect(its.map(({ action, actor }: { action: string; actor: string }) => [action, actor]).reverse()).toEqual([
        ['goal.create', 'editor-of-alpha'],
        ['goal.plan', 'editor-of-alpha'],
        ['goal.run', 'editor-of-alpha'],
        ['goal.evaluate', 'host'],
        ['goal.abandon', 'editor-of-alpha'],
      ]);
    });
  },
  SETTINGS,
);

describe('a goal for suites', () => {
  it('is there, once, for everybody who has a configured key', async () => {
    const folder = freshFolder();
    const first = await startTestHost('sqlite', undefined, { samples: true, dataFolder: folder.path });
    await first.stop();
    const host = await first.another();
    try {
      for (const who of ['editor', 'workspace', 'other', 'test'] as const) {
        const { body } = await host.as(who).get('/v1/host/sample/goals?state=active');
        const ours = body.goals.filter(({ owner }: { owner: { workspace?: string } }) => !owner.workspace);
        expect(who === 'workspace' ? body.goals : ours).toHaveLength(1);
        const claim = await host.as(who).post(`/v1/host/sample/goals/${body.goals[0].id}`, { state: 'satisfied' });
        expectRefusal(claim, 422, 'validation_error');
      }
    } finally {
      await host.stop();
      folder.remove();
    }
  });
});
