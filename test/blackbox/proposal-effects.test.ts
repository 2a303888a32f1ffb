import { afterAll, expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { capstan } from '../support/command-line.ts';
import { freshFolder } from '../support/database.ts';
import { node, register, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS } from '../support/host.ts';
import { apply, drafted, PROPOSALS, template } from '../support/proposals.ts';
import { scriptedModel } from '../support/scripted-model.ts';
import { onEachStore } from '../support/stores.ts';
import { until } from '../support/until.ts';

/**
 * Goal: somebody who applied a proposal learns how it turned out, and harm is taken back by a proposal. Method: runs of a
 * model that fails, or does well, once the words of the draft are installed.
 */

type Body = Answer['body'];

const folder = freshFolder();
afterAll(() => folder.remove());
const model = scriptedModel(folder.path, {
  answers: [{ when: { contains: 'Work.' }, content: 'Fine.' }],
});
const RUNS = 8;

onEachStore(
  'an applied proposal',
  (host) => {
    const api = (): Api => host().as('owner');
    const effectOf = async (id: string): Promise<Body> =>
      (await api().get(`/v1/host/capstan/proposals/${id}/effect`)).body;
    const measure = ({ measures }: Body, name: string): Body => measures.find((each: Body) => each.name === name);

    async function prompted() {
      const prompt = template({ text: 'Work.' });
      expect((await api().post('/v1/prompts', prompt)).status).toBe(201);
      const config = { provider: 'play', model: 'small', userPromptRef: `prompt:${prompt.templateId}` };
      const workflowId = await register(api(), workflow([node('speak', 'core.ai.chatCompletion', { config })]));
      const runs = async (): Promise<string[]> => {
        const runIds: string[] = [];
        for (let count = 0; count < RUNS; count++) runIds.push(await api().run(workflowId));
        for (const runId of runIds) await api().ended(runId);
        return runIds;
      };
      return { prompt, workflowId, runs };
    }
    const applied = async (prompt: object, text: string): Promise<string> => {
      const { id } = await drafted(api(), 'prompt-template', { ...prompt, version: '1.1.0', text });
      const early = await api().get(`/v1/host/capstan/proposals/${id}/effect`);
      expectRefusal(early, 409, 'conflict');
      expect(early.body.message).toContain('Apply it first.');
      expect((await apply(api(), id)).status).toBe(200);
      return id;
    };
    /** The effect once the windows reach back to the first run before the change. */
    const whole = (id: string): Promise<Body> =>
      until(
        () => effectOf(id),
        (effect) => measure(effect, 'failures').before.runs === RUNS && measure(effect, 'failures').after.runs === RUNS,
      );

    it('shows what has become better, and how sure that is', async () => {
      const { prompt, workflowId, runs } = await prompted();
      const before = await runs();
      for (const runId of before) {
        const correction = { target: { nodeId: 'speak' }, signal: { kind: 'correction', correction: 'Shorter.' } };
        expect((await api().post(`/v1/runs/${runId}/annotations`, correction)).status).toBe(201);
      }
      const id = await applied(prompt, 'Work. Be short.');
      expect(await effectOf(id)).toMatchObject({ verdict: 'too-few', workflows: [workflowId] });
      const [first] = await runs();
      // What only repeats a run is no run of its own.
      const fork = await api().post(`/v1/runs/${first}:fork`, { mode: 'replay' });
      await api().ended(fork.body.runId);
      const effect = await whole(id);
      expect(effect).toMatchObject({ proposalId: id, verdict: 'better' });
      expect(measure(effect, 'corrections').sentence).toBe(
        'fewer corrections: 8 of 8 before, 0 of 8 after; unlikely to be chance (p < 0.001)',
      );
      expect(measure(effect, 'failures')).toMatchObject({ verdict: 'unclear', p: 1 });
      expect(measure(effect, 'ratings').verdict).toBe('too-few');
      expectRefusal(await host().as('other').get(`/v1/host/capstan/proposals/${id}/effect`), 404, 'not_found');
      const environment = { CAPSTAN_URL: host().url, CAPSTAN_KEY: KEYS.owner.key };
      const { out } = await capstan(['proposals', 'effect', id], { environment });
      expect(out).toContain('fewer corrections: 8 of 8 before');
    });

    it('that did harm has its rollback proposed, once, and without effect until somebody applies it', async () => {
      const { prompt, runs } = await prompted();
      await runs();
      const id = await applied(prompt, 'Break.');
      await runs();
      const effect = await until(
        () => effectOf(id),
        ({ rollbackProposalId }) => rollbackProposalId !== undefined,
      );
      expect(effect.verdict).toBe('worse');
      const back = (await api().get(`${PROPOSALS}/${effect.rollbackProposalId}`)).body;
      expect(back).toMatchObject({
        kind: 'prompt-template',
        state: 'draft',
        title: `Roll ${prompt.templateId} back to 1.0.0`,
        artifact: { templateId: prompt.templateId, version: '1.2.0', text: 'Work.' },
      });
      expect(back.rationale).toMatch(/more failures: 0 of \d before, \d of \d after; unlikely to be chance/);
      expect(back.provenance.sourceRunIds.length).toBeGreaterThan(0);
      const inUse = async (): Promise<Body> => (await api().get(`/v1/prompts/${prompt.templateId}`)).body;
      expect(await inUse()).toMatchObject({ version: '1.1.0', text: 'Break.' });
      expect((await apply(api(), back.id)).status).toBe(200);
      expect(await inUse()).toMatchObject({ version: '1.2.0', text: 'Work.' });
      const { proposals } = (await api().get(`${PROPOSALS}?kind=prompt-template`)).body;
      expect(proposals.filter(({ title }: Body) => title === back.title)).toHaveLength(1);
    });
  },
  { models: [model], results: { everyMs: 100 } },
);
