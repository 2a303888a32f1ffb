import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Api } from '../support/api.ts';
import { freshFolder } from '../support/database.ts';
import { expectRefusal } from '../support/envelope.ts';
import { counting, PLANS, planned, registerCounting } from '../support/goals.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { resolve } from '../support/interrupts.ts';
import { operationsOf } from '../support/operations.ts';
import { apply, chainPack, drafted, evidenceOf, PROPOSALS, rewrite } from '../support/proposals.ts';
import { storesFor } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** What the operator switches off is neither advertised nor served, and what was begun waits until it is on again. */

const SCHEDULES = '/v1/host/capstan/schedules';
const WITHOUT_PROPOSALS = { activation: 'approval-gate', gates: [], pendingMax: 50, isOff: true } as const;
const WITHOUT_GOALS = { standstillMax: 10, judgeTries: 1, judgeRetryMs: 10, isOff: true };

const agentsOf = async (host: TestHost) => (await host.anonymous.get('/.well-known/openwop')).body.agents;

describe.each(storesFor('proposals and goals that are switched off'))(
  'proposals and goals that are switched off, on %s',
  (kind) => {
    const folder = freshFolder();
    let host: TestHost;
    let begun: { readonly goalId: string; readonly gateRun: string; readonly events: number };
    const api = (): Api => host.as('owner');

    beforeAll(async () => {
      const on = await startTestHost(kind, inject('postgresUrl'), { dataFolder: folder.path });
      const owner = on.as('owner');
      await registerCounting(owner);
      const goalId = await planned(
        owner,
        { continuation: { mode: 'schedule' }, bounds: { maxLoopIterations: 50 } },
        { workflowId: counting.id, schedule: { cron: '* * * * * *' } },
      );
      const { id } = await drafted(owner, 'workflow-chain-pack', chainPack());
      await rewrite(owner, id);
      expect((await apply(owner, id)).status).toBe(202);
      const gateRun = (await evidenceOf(owner, id)).runId;
      begun = { goalId, gateRun, events: (await owner.events(gateRun)).length };
      await on.stop();
      host = await on.another({ proposals: WITHOUT_PROPOSALS, goals: WITHOUT_GOALS });
    });
    afterAll(async () => {
      await host?.stop();
      folder.remove();
    });

    it('are not advertised', async () => {
      const agents = await agentsOf(host);
      expect(agents.supported).toBe(true);
      expect(agents).not.toHaveProperty('proposals');
      expect(agents).not.toHaveProperty('goals');
    });

    it('have no routes, under any of their addresses', async () => {
      const paths = (await operationsOf(api())).map(({ path }) => path);
      expect(paths.filter((path) => /goals|proposals(?!$)|artifacts\/installed/.test(path))).toEqual([]);
      for (const prefix of ['/v1', '/v1/host/sample', '/v1/host/capstan']) {
        for (const family of ['proposals', 'goals']) {
          expectRefusal(await api().get(`${prefix}/${family}/any`), 404, 'not_found');
        }
      }
      expectRefusal(await api().post(`${PROPOSALS}/any/apply`, {}), 404, 'not_found');
      expectRefusal(await api().post(`${PLANS}/${begun.goalId}/runs`), 404, 'not_found');
      expectRefusal(await api().post('/v1/host/capstan/proposals:synthesize', {}), 404, 'not_found');
    });

    it('have no events: an open gate cannot be answered, and the arm of a goal starts nothing', async () => {
      const refused = await resolve(host.as('reviewer'), begun.gateRun, 'review', {
        decision: 'granted',
        artifactHash: 'a'.repeat(64),
      });
      expectRefusal(refused, 409, 'conflict');
      expect(refused.body.details.reason).toBe('off');
      expect(await api().events(begun.gateRun)).toHaveLength(begun.events);
      const arm = await until(
        async () => (await api().get(SCHEDULES)).body.items[0],
        ({ lastError }) => lastError !== undefined,
      );
      expect(JSON.stringify(arm.lastError)).toContain('disabled');
    });
  },
);

describe('the kinds that discovery lists', () => {
  const listed = async (overrides: object): Promise<string[]> => {
    const host = await startTestHost('sqlite', undefined, overrides);
    const { artifactKinds } = (await agentsOf(host)).proposals;
    await host.stop();
    return artifactKinds;
  };

  it('are those that can be drafted: without feedback no prompts, without models no agents either', async () => {
    expect(await listed({})).toEqual(['prompt-template', 'workflow-chain-pack', 'agent-pack', 'automation']);
    expect(await listed({ feedback: false })).toEqual(['workflow-chain-pack', 'agent-pack', 'automation']);
    expect(await listed({ conformance: false })).toEqual(['workflow-chain-pack', 'automation']);
  });
});
