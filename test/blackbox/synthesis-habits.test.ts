import { expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { commitPast } from '../support/database.ts';
import {
  habitNodes,
  PLANTED_PATH,
  PLANTED_WORKFLOW,
  type PlantedPrompt,
  plantedHistory,
} from '../support/planted-runs.ts';
import { onEachStore } from '../support/stores.ts';

/** Evidence is real: of ten thousand runs, those that are habits are found, and hardly anything else. */

type Body = Answer['body'];

/** Writing them past the host takes its time where each is a round trip. */
const RUNS = { embedded: 10_000, remote: 3_000 };
const DAY_MS = 24 * 60 * 60_000;
const SYNTHESIZE = '/v1/host/capstan/proposals:synthesize';

async function prompt(api: Api, templateId: string): Promise<PlantedPrompt> {
  const template = { templateId, version: '1.0.0', kind: 'system', text: `You are ${templateId}.` };
  expect((await api.post('/v1/prompts', template)).status).toBe(201);
  return template;
}

onEachStore(
  'a tenant of thousands of runs',
  (host) => {
    it('is found to have three habits, and at most one other; looked at again, none, and nothing is read twice', async () => {
      const api = host().as('owner');
      const prompts = [await prompt(api, 'speaker'), await prompt(api, 'other-speaker')] as const;
      const runs = host().config.databaseUrl === undefined ? RUNS.embedded : RUNS.remote;
      // Up to the end of yesterday: what is planted does not depend on the hour at which this runs.
      const until = Math.floor(Date.now() / DAY_MS) * DAY_MS;
      const planting = { tenant: 'alpha', runs, seed: 11, until, prompts };
      await commitPast(host().config, plantedHistory(planting));

      const { body } = await api.post(SYNTHESIZE, {});
      expect(body.scannedRuns).toBe(runs);
      const { created } = body as { created: Body[] };
      expect(created.length).toBeLessThanOrEqual(4);
      const [revised] = created.filter(({ artifact }) => artifact.templateId === 'speaker');
      expect(revised).toMatchObject({ kind: 'prompt-template', artifact: { version: '1.1.0' } });
      expect(revised.rationale).toContain('12 times');
      const [chain] = created.filter(({ kind }) => kind === 'workflow-chain-pack');
      const { dag, parameters } = chain.artifact.chains[0];
      expect(dag.nodes.map(({ typeId }: Body) => typeId)).toEqual(PLANTED_PATH);
      expect(Object.keys(parameters.properties)).toEqual(PLANTED_PATH.map((_, index) => `step${index + 1}_of`));
      expect(chain.rationale).toContain('40 runs of 3 workflows');
      const [automation] = created.filter(({ kind }) => kind === 'automation');
      expect(automation.artifact).toMatchObject({ workflowId: PLANTED_WORKFLOW, cron: '30 7 * * *', timezone: 'UTC' });

      const again = (await api.post(SYNTHESIZE, {})).body;
      expect(again).toMatchObject({ created: [], scannedRuns: 0 });
      const proposed = again.heldBack.filter(({ reason }: Body) => reason === 'proposed');
      expect(proposed.map(({ proposalId }: Body) => proposalId).toSorted()).toEqual(
        created.map(({ id }) => id).toSorted(),
      );
      const nothing = { created: [], heldBack: [], scannedRuns: 0 };
      expect((await host().as('other').post(SYNTHESIZE, {})).body).toEqual(nothing);
    });
  },
  // What is planted is up to sixty days old.
  { retentionMs: 365 * DAY_MS },
  [habitNodes],
);
