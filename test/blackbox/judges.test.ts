import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, Api } from '../support/api.ts';
import { freshFolder } from '../support/database.ts';
import { node, register, unique, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { counting, evaluations, GOALS, judged, planned, reaches, registerCounting, run } from '../support/goals.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { apply, evidenceOf, INSTALLED } from '../support/proposals.ts';
import { scriptedModel } from '../support/scripted-model.ts';
import { onEachStore } from '../support/stores.ts';

/**
 * Goal: what people say about verdicts has consequences. Method: judges that are wrong on purpose; people dispute them,
 * and the figures, the gold set and the next verdicts follow.
 */

type Body = Answer['body'];

const VERIFIERS = '/v1/host/capstan/verifiers';
const ALWAYS = { kind: 'criteria', criteria: [{ key: 'any', expression: 'true' }] };
const NEVER = { kind: 'criteria', criteria: [{ key: 'none', expression: 'false' }] };

onEachStore(
  'a judge',
  (host) => {
    const api = (): Api => host().as('editor');
    const reviewer = (): Api => host().as('reviewer');
    beforeAll(() => registerCounting(api()));

    const put = async (body: object): Promise<Body> => {
      const answer = await api().post(VERIFIERS, body);
      expect(answer.status, answer.text).toBe(201);
      return answer.body;
    };
    const label = async (runId: string, text: string): Promise<void> => {
      const signal = { kind: 'label', label: text };
      expect((await reviewer().post(`/v1/runs/${runId}/annotations`, { signal })).status).toBe(201);
    };
    const agreement = async (id: string, query = ''): Promise<Body> =>
      (await api().get(`${VERIFIERS}/${id}/agreement${query}`)).body;
    const goalBy = (verifierRef: string): Promise<string> =>
      planned(api(), { completion: { check: 'verifier', verifierRef } }, { workflowId: counting.id });
    const inInbox = async (id: string): Promise<string[]> =>
      (await api().get('/v1/host/capstan/inbox?limit=200')).body.items
        .filter(({ goalId, kind }: Body) => goalId === id && kind === 'goal')
        .map(({ title }: Body) => title);

    /** A verifier that is always satisfied and was disputed three times. */
    async function disputed(more: object = {}): Promise<string> {
      const { id } = await put({ id: unique('ver'), ...ALWAYS });
      for (let count = 0; count < 3; count++) {
        const goal = await goalBy(id);
        const runId = await run(api(), goal);
        await reaches(api(), goal, 'satisfied');
        await label(runId, 'not-satisfied');
      }
      await put({ id, ...ALWAYS, ...more });
      return id;
    }

    it('has figures of how far people agree with it, with counts and dates, and a gold set', async () => {
      const id = await disputed();
      const goal = await goalBy(id);
      const runId = await run(api(), goal);
      await reaches(api(), goal, 'satisfied');
      await label(runId, 'satisfied');
      const figures = await agreement(id, '?period=day');
      expect(figures).toMatchObject({
        verifierId: id,
        ...{ verdicts: 4, reviewed: 4, agreed: 1, disputed: 3, agreementRate: 0.25 },
        versions: [
          { judge: `${id}@1`, verdicts: 3, agreed: 0, disputed: 3, agreementRate: 0 },
          { judge: `${id}@2`, verdicts: 1, agreed: 1, disputed: 0, agreementRate: 1 },
        ],
        criteria: [{ key: 'any', verdicts: 4, unmet: 0, disputedUnmet: 0, disputedMet: 3 }],
        recent: { reviewed: 4, agreed: 1, secondJudge: false },
      });
      const counted = figures.periods.map(({ agreed, disputed: not }: Body) => agreed + not);
      expect(counted.reduce((sum: number, each: number) => sum + each, 0)).toBe(4);
      const { from, to } = figures.periods[0];
      expect(Date.parse(to) - Date.parse(from)).toBe(86_400_000);
      expect(new Date((await agreement(id)).periods[0].from).getUTCDay()).toBe(1);

      const first = (await api().get(`${VERIFIERS}/${id}/gold-set?limit=1`)).body;
      expect(first.items).toEqual([
        expect.objectContaining({ runId, goalId: goal, judge: `${id}@2`, said: true, expected: true }),
      ]);
      const rest = (await api().get(`${VERIFIERS}/${id}/gold-set?cursor=${first.nextCursor}`)).body;
      expect(rest.items.map(({ said, expected }: Body) => [said, expected])).toEqual(Array(3).fill([true, false]));
      expect(rest.items[0]).toMatchObject({ reviewedBy: 'reviewer-of-alpha', evidence: [{ key: 'any', met: true }] });
      expectRefusal(await api().get(`${VERIFIERS}/${unique('no')}/agreement`), 404, 'not_found');
    });

    describe('that people often disagree with', () => {
      it('needs a person, who decides', async () => {
        const id = await disputed({ secondJudge: { agreementBelow: 0.5, last: 10 } });
        expect((await agreement(id)).recent).toEqual({ reviewed: 3, agreed: 0, secondJudge: true });
        for (const [decision, state, reviewed] of [
          ['not-satisfied', 'active', 3],
          ['satisfied', 'satisfied', 4],
        ] as const) {
          const goal = await goalBy(id);
          const runId = await run(api(), goal);
          await reaches(api(), goal, 'escalated');
          const { escalation } = await evaluations(api(), goal);
          expect(escalation).toMatchObject({ reason: 'second-judge', runId });
          expect(escalation.detail).toBe(
            `${id}@2 says satisfied; people agreed with 0 of its last ${reviewed} reviewed verdicts.`,
          );
          expect(await inInbox(goal)).toEqual(['The verdict needs a person: Finish the checklist']);
          await label(runId, decision);
          await judged(api(), goal, 1);
          await reaches(api(), goal, state);
          const satisfied = decision === 'satisfied';
          expect((await evaluations(api(), goal)).items).toEqual([
            expect.objectContaining({
              satisfied,
              judge: `${id}@2`,
              secondJudge: { judge: 'person:reviewer-of-alpha', satisfied },
            }),
          ]);
        }
        expect((await agreement(id)).recent).toEqual({ reviewed: 5, agreed: 1, secondJudge: true });
      });

      it('is not satisfied where somebody resumes the goal and nobody has agreed', async () => {
        const id = await disputed({ secondJudge: { agreementBelow: 1 } });
        const goal = await goalBy(id);
        await run(api(), goal);
        await reaches(api(), goal, 'escalated');
        expect((await api().post(`${GOALS}/${goal}/resume`)).status).toBe(200);
        await judged(api(), goal, 1);
        const [{ satisfied, evidence }] = (await evaluations(api(), goal)).items;
        expect(satisfied).toBe(false);
        expect(evidence.at(-1)).toMatchObject({ key: 'second-judge', met: false });
      });

      it('needs another judge, and a person if the two disagree', async () => {
        const [yes, no] = [await put({ id: unique('yes'), ...ALWAYS }), await put({ id: unique('no'), ...NEVER })];
        const id = await disputed({ secondJudge: { agreementBelow: 0.5, verifierRef: yes.id } });
        const agreed = await goalBy(id);
        await run(api(), agreed);
        await reaches(api(), agreed, 'satisfied');
        const [{ secondJudge }] = (await evaluations(api(), agreed)).items;
        expect(secondJudge).toEqual({ judge: `${yes.id}@1`, satisfied: true });

        await put({ id, ...ALWAYS, secondJudge: { agreementBelow: 0.5, verifierRef: no.id } });
        const contested = await goalBy(id);
        const runId = await run(api(), contested);
        await reaches(api(), contested, 'escalated');
        expect((await evaluations(api(), contested)).escalation.detail).toContain(`${no.id}@1 says not satisfied.`);
        await label(runId, 'satisfied');
        await reaches(api(), contested, 'satisfied');
      });

      it('cannot be its own second judge, and not one that there is not', async () => {
        const id = unique('ver');
        await put({ id, ...ALWAYS });
        for (const verifierRef of [id, `${id}@1`, unique('no')]) {
          const refused = await api().post(VERIFIERS, {
            id,
            ...ALWAYS,
            secondJudge: { agreementBelow: 1, verifierRef },
          });
          expectRefusal(refused, 400, 'validation_error');
          expect(refused.body.details.field).toBe('secondJudge.verifierRef');
        }
      });
    });
  },
  { goals: { standstillMax: 10, judgeTries: 1, judgeRetryMs: 10 } },
);

describe('a judge with a rubric', () => {
  const folder = freshFolder();
  let host: TestHost;
  const api = (): Api => host.as('editor');
  const reviewer = (): Api => host.as('reviewer');

  /** Kind to everything, until its rubric tells it what people say. */
  const verdict = (satisfied: boolean) => ({
    satisfied,
    confidence: 0.9,
    evidence: [{ key: 'sources', met: satisfied, detail: 'As far as one can see.' }],
  });
  const usage = { inputTokens: 100, outputTokens: 10 };
  const SCRIPT = {
    answers: [
      { when: { contains: 'names no source' }, data: verdict(false), usage },
      { when: { contains: 'The rubric' }, data: verdict(true), usage },
      { content: 'An answer.' },
    ],
  };

  beforeAll(async () => {
    const models = [
      scriptedModel(folder.path, SCRIPT, { provider: 'local', prices: { small: { input: 10, output: 20 } } }),
    ];
    const goals = { standstillMax: 10, judgeTries: 1, judgeRetryMs: 10 };
    host = await startTestHost('sqlite', undefined, { models, goals });
    await registerCounting(api());
  });
  afterAll(async () => {
    await host?.stop();
    folder.remove();
  });

  const synthesized = async (): Promise<Body> =>
    (await api().post('/v1/host/capstan/proposals:synthesize', { kinds: ['prompt-template'] })).body;
  const inUse = async (id: string): Promise<Body> => (await api().get(`${VERIFIERS}/${id}`)).body;

  /** The verdict on a run of a new goal. */
  async function judgedBy(verifierRef: string, workflowId = counting.id): Promise<Body> {
    const goal = await planned(api(), { completion: { check: 'verifier', verifierRef } }, { workflowId });
    await run(api(), goal);
    await judged(api(), goal, 1);
    return (await evaluations(api(), goal)).items[0];
  }

  it('has a better one drafted from disputes, which is used once it is applied and not once it is taken back', async () => {
    const id = unique('sources');
    const stored = { id, kind: 'model', rubric: 'The work is complete.', model: 'local' };
    expect((await api().post(VERIFIERS, stored)).status).toBe(201);
    const say = async (runId: string, note: string): Promise<void> => {
      const signal = { kind: 'label', label: 'not-satisfied' };
      expect((await reviewer().post(`/v1/runs/${runId}/annotations`, { signal, note })).status).toBe(201);
    };
    for (const note of ['It names no source.', 'it names no source', 'Ask ada@corp.example: it names no source']) {
      const { runId, satisfied } = await judgedBy(id);
      expect(satisfied).toBe(true);
      const { heldBack } = await synthesized();
      if (note.startsWith('Ask')) expect(heldBack[0]).toMatchObject({ reason: 'needs-more' });
      await say(runId, note);
    }

    const { created } = await synthesized();
    expect(created).toHaveLength(1);
    const [draft] = created;
    expect(draft.title).toBe(`Revise the rubric of ${id} after 3 disputes`);
    expect(draft.rationale).toContain('3 times it was too lenient');
    expect(draft.artifact).toMatchObject({ version: '2.0.0', tags: [`verifier:${id}`] });
    const { text } = draft.artifact;
    expect(text).toContain('The work is complete.\n');
    expect(text).toMatch(/- Reject work of which people say: it names no source\.\n/i);
    expect(text).toContain('- Be stricter about "sources": people rejected work in which it was met.\n');
    expect(JSON.stringify(created)).not.toContain('ada@corp.example');
    expect((await evidenceOf(api(), draft.id)).change).toMatch(/^\+.*- Reject work/m);
    const standing = await planned(api(), { completion: { check: 'verifier', verifierRef: id } });
    const impact = (await api().get(`/v1/host/capstan/proposals/${draft.id}/impact`)).body;
    expect(impact).toMatchObject({ changes: [`verifier:${id}`], affected: [{ kind: 'goal', id: standing, ref: id }] });
    expect((await inUse(id)).version).toBe(1);
    expect((await judgedBy(id)).satisfied).toBe(true);

    const applied = await apply(reviewer(), draft.id);
    expect(applied.status, applied.text).toBe(200);
    expect(await inUse(id)).toMatchObject({ version: 2, rubric: text, model: 'local' });
    expect(await judgedBy(id)).toMatchObject({ satisfied: false, judge: `${id}@2` });

    const { installedArtifactRef: ref } = applied.body;
    expect((await reviewer().request('DELETE', `${INSTALLED}/${ref}`)).status).toBe(204);
    expect(await inUse(id)).toMatchObject({ version: 1, rubric: 'The work is complete.' });
    expect(await judgedBy(id)).toMatchObject({ satisfied: true, judge: `${id}@1` });
  });

  it('is tried on the gold set within a budget: a rubric that agrees more is told apart', async () => {
    const id = unique('tried');
    expect(
      (await api().post(VERIFIERS, { id, kind: 'model', rubric: 'The work is complete.', model: 'local' })).status,
    ).toBe(201);
    for (const label of ['not-satisfied', 'not-satisfied', 'satisfied']) {
      const { runId } = await judgedBy(id);
      const signal = { kind: 'label', label };
      expect((await reviewer().post(`/v1/runs/${runId}/annotations`, { signal })).status).toBe(201);
    }
    const trial = (body: object): Promise<Answer> => api().post(`${VERIFIERS}/${id}/gold-set:judge`, body);
    const owner = host.as('owner');
    const spent = async (): Promise<Body> => {
      const { workflows } = (await owner.get('/v1/host/capstan/costs')).body;
      return workflows.find(({ workflowId }: Body) => workflowId === 'capstan-judge');
    };
    const before = await spent();
    const as = (await trial({ maxCostUsd: 1 })).body;
    const after = await spent();
    expect(after.calls - before.calls).toBe(3);
    expect(after.usd - before.usd).toBeCloseTo(as.costUsd, 9);
    const { items: tried } = (await owner.get('/v1/host/capstan/audit?action=verifier.try')).body;
    expect(tried).toMatchObject([{ target: id, details: { maxCostUsd: 1 } }]);
    expect(as).toMatchObject({ verifierId: id, cases: 3, agreedBefore: 1, agreedNow: 1 });
    expect(as.costUsd).toBeGreaterThan(0);
    const stricter = await trial({ maxCostUsd: 1, rubric: 'Reject what names no source.' });
    expect(stricter.body).toMatchObject({ cases: 3, agreedBefore: 1, agreedNow: 2 });
    expect(stricter.body.items.map(({ now }: Body) => now)).toEqual([false, false, false]);
    expect((await trial({ maxCostUsd: 1, limit: 1 })).body.cases).toBe(1);
    const poor = (await trial({ maxCostUsd: as.costUsd / 2 })).body;
    expect(poor).toMatchObject({ stoppedBy: 'budget' });
    expect(poor.cases).toBeLessThan(3);
    expect(poor.costUsd).toBeLessThanOrEqual(as.costUsd / 2);
    expect((await inUse(id)).version).toBe(1);
    expectRefusal(await trial({}), 400, 'validation_error');
    expectRefusal(await trial({ maxCostUsd: 100.01 }), 400, 'validation_error');
    const scopes = ['goals:read', 'goals:write'];
    const { key } = (await owner.post('/v1/host/capstan/keys', { name: unique('thrifty'), scopes })).body;
    const unpaid = await new Api(host.url, key).post(`${VERIFIERS}/${id}/gold-set:judge`, { maxCostUsd: 1 });
    expectRefusal(unpaid, 403, 'forbidden');
    expect(unpaid.body.details).toMatchObject({ scopeRequired: 'runs:create' });
    expectRefusal(await api().post(`${VERIFIERS}/${unique('no')}/gold-set:judge`, { maxCostUsd: 1 }), 404, 'not_found');
  });

  it('is the only kind that is rewritten: expressions are left to people, who are told', async () => {
    const id = unique('ver');
    expect((await api().post(VERIFIERS, { id, ...ALWAYS })).status).toBe(201);
    for (let count = 0; count < 3; count++) {
      const { runId } = await judgedBy(id);
      await reviewer().post(`/v1/runs/${runId}/annotations`, { signal: { kind: 'flag' } });
    }
    const { created, heldBack } = await synthesized();
    expect(created).toEqual([]);
    expect(heldBack.find(({ what }: Body) => what.includes(id))).toMatchObject({
      reason: 'useless',
      message: 'it judges by criteria, which only people can change',
    });
  });

  it('whose criterion keeps failing has the prompt of the work ask for it', async () => {
    const templateId = unique('writer');
    const template = { templateId, version: '1.0.0', kind: 'system', text: 'You write.' };
    expect((await api().post('/v1/prompts', template)).status).toBe(201);
    const writing = workflow([
      node('ai', 'core.ai.callPrompt', { config: { systemPromptRef: `prompt:${templateId}`, userPrompt: 'Hello.' } }),
    ]);
    await register(api(), writing);
    const id = unique('ver');
    const criteria = [{ key: 'a greeting by name', expression: 'false' }];
    expect((await api().post(VERIFIERS, { id, kind: 'criteria', criteria })).status).toBe(201);
    for (let count = 0; count < 3; count++) expect((await judgedBy(id, writing.id)).satisfied).toBe(false);
    const { created } = await synthesized();
    expect(created).toHaveLength(1);
    expect(created[0].artifact).toMatchObject({ templateId, version: '1.1.0' });
    expect(created[0].artifact.text).toContain(
      'Meet these criteria, which earlier answers missed:\n- Meet the criterion "a greeting by name".\n',
    );
    expect((await synthesized()).created).toEqual([]);
  });
});
