import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, Api } from '../support/api.ts';
import { expression, line, node, register, unique, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import {
  counting,
  evaluations,
  GOALS,
  judged,
  never,
  PLANS,
  plan,
  planned,
  reaches,
  registerCounting,
  run,
  setGoal,
  told,
} from '../support/goals.ts';
import { approval, resolve, waits } from '../support/interrupts.ts';
import { keyRecords } from '../support/keys.ts';
import { onStoresAtOnce } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** A goal never stands still unnoticed: every arm is checked whole, bounds win, and it always says how it stands. */

const SCHEDULES = '/v1/host/capstan/schedules';
const PLANNER = { key: 'planner-of-alpha', tenant: 'alpha', principal: 'planner', person: 'pia', role: 'owner' };
const PLANNER_TOO = { ...PLANNER, key: 'planner-of-alpha-too', principal: 'planner-too' };
const apiKeys = keyRecords([PLANNER, PLANNER_TOO]);
const LATER = { schedule: { cron: '0 0 1 1 *' } };
const gated = workflow([approval('gate', { excludeInitiator: true })]);

onStoresAtOnce(
  'a standing goal',
  (host) => {
    const api = (): Api => host().as('editor');
    beforeAll(async () => {
      await registerCounting(api());
      await register(api(), gated);
    });

    const put = (id: string, body: object): Promise<Answer> =>
      api().request('PUT', `${PLANS}/${id}/plan`, { workflowId: counting.id, criteria: [never], ...body });
    const edit = (id: string, body: object): Promise<Answer> => api().request('PATCH', `${GOALS}/${id}`, body);
    const act = (id: string, verb: string): Promise<Answer> => api().post(`${GOALS}/${id}/${verb}`);
    const standing = async (id: string) => (await evaluations(api(), id)).standing;
    const inInbox = async (id: string): Promise<string[]> =>
      (await api().get('/v1/host/capstan/inbox?limit=200')).body.items
        .filter(({ goalId }: { goalId?: string }) => goalId === id)
        .map(({ title }: { title: string }) => title);
    const closings = async (id: string): Promise<string[]> =>
      (await told(api(), id))
        .filter(({ type }) => type === 'goal.closed')
        .map(({ payload: { finalState } }) => finalState);

    describe('has every block of its plan checked', () => {
      const BAD: readonly [string, object, RegExp][] = [
        ['a cron that is none', { schedule: { cron: 'whenever' } }, /^schedule\.cron/],
        ['a cron that never comes', { schedule: { cron: '0 0 31 2 *' } }, /^schedule\.cron/],
        [
          'a time zone that there is not',
          { schedule: { cron: '0 9 * * *', timezone: 'Mars/Olympus' } },
          /^schedule\.timezone/,
        ],
        [
          'a heartbeat whose condition does not compile',
          { heartbeat: { intervalSec: 9, when: 'from >' } },
          /^heartbeat\.when/,
        ],
        [
          'a heartbeat whose state does not compile',
          { heartbeat: { intervalSec: 9, state: '((' } },
          /^heartbeat\.state/,
        ],
        ['a commitment without a condition', { commitment: { intention: 'x' } }, /^commitment\.at/],
        ['a commitment in the past', { commitment: { at: '2020-01-01T00:00:00Z' } }, /^commitment\.at/],
        ['a commitment in a thousand years', { commitment: { at: '3020-01-01T00:00:00Z' } }, /^commitment\.at/],
        ['an interval without a time', { commitment: { everySec: 5 } }, /^commitment\./],
      ];

      it.each(['manual', 'schedule', 'heartbeat', 'commitment'])('where it continues by %s', async (mode) => {
        const { id } = await setGoal(api(), { continuation: { mode } });
        for (const [what, block, field] of BAD) {
          const refused = await put(id, block);
          expect(refused.status, `${what}: ${refused.text}`).toBe(400);
          expect(refused.body.details.field, what).toMatch(field);
        }
        expectRefusal(await api().get(`${PLANS}/${id}/plan`), 404, 'not_found');
      });

      it('while it is paused, and where another arm is lent to it', async () => {
        const armRef = (await api().post(SCHEDULES, { workflowId: counting.id, cron: '0 0 1 1 *' })).body.id;
        const lent = await setGoal(api(), { continuation: { mode: 'schedule', armRef } });
        const paused = await setGoal(api(), { continuation: { mode: 'schedule' } });
        await act(paused.id, 'pause');
        for (const { id } of [lent, paused]) {
          for (const [what, block] of BAD) expect((await put(id, block)).status, what).toBe(400);
        }
        const wrong = { continuation: { mode: 'schedule', armRef: unique('sch') } };
        expectRefusal(await edit(paused.id, wrong), 422, 'validation_error');
      });

      it('before it is resumed: what cannot go on by itself is not resumed', async () => {
        const { id } = await setGoal(api(), { continuation: { mode: 'schedule' } });
        await put(id, {});
        await act(id, 'pause');
        const refused = await act(id, 'resume');
        expectRefusal(refused, 409, 'conflict');
        expect(refused.body.details.reason).toBe('no-arm');
        await put(id, LATER);
        expect((await act(id, 'resume')).status).toBe(200);
        expect(await standing(id)).toEqual({ status: 'armed' });
      });
    });

    describe('ends when its time is over', () => {
      const bounds = { maxLoopIterations: 5, runTimeoutMs: 2_000 };

      it('while it waits for a person', async () => {
        const id = await planned(api(), { bounds }, { criteria: [] });
        await run(api(), id);
        await reaches(api(), id, 'escalated');
        await reaches(api(), id, 'bound-exceeded');
        expect(await closings(id)).toEqual(['escalated', 'bound-exceeded']);
        expect(await inInbox(id)).toEqual([]);
      });

      it('while it is paused', async () => {
        const { id } = await setGoal(api(), { bounds });
        await act(id, 'pause');
        await reaches(api(), id, 'bound-exceeded');
        expect(await closings(id)).toEqual(['bound-exceeded']);
      });

      it('and says so too when somebody gives it up while it waits for a person', async () => {
        const id = await planned(api(), {}, { criteria: [] });
        await run(api(), id);
        await reaches(api(), id, 'escalated');
        await act(id, 'abandon');
        expect(await closings(id)).toEqual(['escalated', 'abandoned']);
      });
    });

    describe('says how it stands', () => {
      it('while somebody has to start it, it runs, is paused or over', async () => {
        const id = await planned(api(), {}, { workflowId: gated.id });
        expect(await standing(id)).toEqual({ status: 'waiting-person', reason: 'manual' });
        expect(await inInbox(id)).toEqual(['Waits to be started: Finish the checklist']);
        await run(api(), id);
        expect(await standing(id)).toEqual({ status: 'running' });
        expect(await inInbox(id)).toEqual([]);
        await act(id, 'pause');
        expect(await standing(id)).toEqual({ status: 'waiting-person', reason: 'paused' });
        expect(await inInbox(id)).toEqual(['Paused: Finish the checklist']);
        await act(id, 'abandon');
        expect(await standing(id)).toBeUndefined();
        expect(await inInbox(id)).toEqual([]);
      });

      it('while it has no plan, or a plan that starts nothing, and that is in the inbox', async () => {
        const { id } = await setGoal(api(), { continuation: { mode: 'schedule' } });
        expect(await standing(id)).toEqual({ status: 'cannot-start', reason: 'The goal has no plan.' });
        expect(await inInbox(id)).toEqual(['Cannot start: Finish the checklist']);
        await put(id, {});
        expect(await standing(id)).toEqual({ status: 'cannot-start', reason: 'The plan has no schedule.' });
        await put(id, LATER);
        expect(await standing(id)).toEqual({ status: 'armed' });
        expect(await inInbox(id)).toEqual([]);
      });

      it('when the workflow of its plan is gone', async () => {
        const own = workflow(counting.nodes, [], { id: unique('short-lived') });
        await register(api(), own);
        const body = { continuation: { mode: 'heartbeat' }, bounds: { maxLoopIterations: 50 } };
        const id = await planned(api(), body, { workflowId: own.id, heartbeat: { intervalSec: 1 } });
        await judged(api(), id, 1);
        await api().request('DELETE', `/v1/host/capstan/workflows/${own.id}`);
        const stalled = await until(
          () => standing(id),
          ({ status }) => status === 'cannot-start',
        );
        expect(stalled.reason).toContain(own.id);
        expect(await inInbox(id)).toHaveLength(1);
        await act(id, 'abandon');
        expect(await inInbox(id)).toEqual([]);
      });

      it('when what started it has started its last run', async () => {
        const body = { continuation: { mode: 'commitment' } };
        const id = await planned(api(), body, { commitment: { at: new Date().toISOString() } });
        await judged(api(), id, 1);
        const stalled = await until(
          () => standing(id),
          ({ status }) => status === 'no-arm',
        );
        expect(stalled.reason).toContain('no more runs start');
        expect(await inInbox(id)).toEqual(['Nothing starts it again: Finish the checklist']);
        await edit(id, { continuation: { mode: 'manual' } });
        expect(await inInbox(id)).toEqual(['Waits to be started: Finish the checklist']);
      });

      it('while it waits for a person, who repairs its judge and its plan and has it go on', async () => {
        const id = await planned(api(), {}, { criteria: [] });
        await run(api(), id);
        await reaches(api(), id, 'escalated');
        expect(await standing(id)).toEqual({ status: 'waiting-person', reason: 'undecided' });
        const edited = await edit(id, { completion: { check: 'host' }, objective: 'Finish it' });
        expect(edited.body).toMatchObject({ state: 'escalated', objective: 'Finish it' });
        await plan(api(), id, { criteria: [{ key: 'any', expression: 'true' }] });
        await act(id, 'resume');
        await run(api(), id);
        await reaches(api(), id, 'satisfied');
      });
    });

    it('while its verdict takes too long: then that is in the inbox too, until the verdict is there', async () => {
      const asking = workflow([
        approval('gate'),
        node('say', 'core.identity', { inputs: { satisfied: expression('true') } }),
      ]);
      await register(api(), { ...asking, edges: line('gate', 'say') });
      const verifierRef = unique('ver');
      const stored = await api().post('/v1/host/capstan/verifiers', {
        id: verifierRef,
        kind: 'workflow',
        workflowId: asking.id,
      });
      expect(stored.status, stored.text).toBe(201);
      const id = await planned(api(), { completion: { check: 'verifier', verifierRef } });
      const runId = await run(api(), id);
      const stalled = await until(
        () => standing(id),
        ({ status, reason }) => status === 'judging' && reason !== undefined,
      );
      expect(stalled.reason).toContain(runId);
      expect(await inInbox(id)).toEqual(['The judge takes long: Finish the checklist']);
      const { items } = (await api().get(`/v1/host/capstan/runs?workflowId=${asking.id}`)).body;
      // The time of the judge may be over before its run has come to the gate.
      await waits(api(), items[0].runId);
      expect((await resolve(host().as('reviewer'), items[0].runId, 'gate', { action: 'accept' })).status).toBe(200);
      await reaches(api(), id, 'satisfied');
      expect(await inInbox(id)).toEqual([]);
    });

    it('goes on once its verifier, which could not decide, is repaired', async () => {
      const silent = await register(api(), workflow([node('none')]));
      const verifierRef = unique('ver');
      const put = (spec: object): Promise<Answer> =>
        api().post('/v1/host/capstan/verifiers', { id: verifierRef, ...spec });
      expect((await put({ kind: 'workflow', workflowId: silent })).status).toBe(201);
      const id = await planned(api(), { completion: { check: 'verifier', verifierRef } });
      await run(api(), id);
      await reaches(api(), id, 'escalated');
      expect((await put({ kind: 'criteria', criteria: [{ key: 'any', expression: 'true' }] })).status).toBe(201);
      expect((await act(id, 'resume')).status).toBe(200);
      await run(api(), id);
      await reaches(api(), id, 'satisfied');
    });

    it('is not approved by whoever wrote its plan or started its run, with any of their keys', async () => {
      const planner = new Api(host().url, PLANNER.key);
      const plannerToo = new Api(host().url, PLANNER_TOO.key);
      const { id } = await setGoal(api());
      await plan(planner, id, { workflowId: gated.id });
      const runId = await run(host().as('owner'), id);
      await waits(api(), runId);
      for (const who of [planner, plannerToo, host().as('owner'), api()]) {
        const refused = await resolve(who, runId, 'gate', { action: 'accept' });
        expectRefusal(refused, 403, 'forbidden');
        expect(refused.body.details.reason).toBe('initiator');
      }
      expect((await resolve(host().as('reviewer'), runId, 'gate', { action: 'accept' })).status).toBe(200);
    });
  },
  { apiKeys, goals: { standstillMax: 10, judgeTries: 1, judgeRetryMs: 10, judgingMs: 100 } },
);
