import { expect, it } from 'vitest';
import type { Api } from '../support/api.ts';
import { capstan } from '../support/command-line.ts';
import { fixed, node, register, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS } from '../support/host.ts';
import { agentPack, chainPack, drafted, template } from '../support/proposals.ts';
import { onEachStore } from '../support/stores.ts';

/** Before somebody applies a proposal, they can see what would change, what stays, and how much goes through it. */

const MOCK_AI = 'local.sample.demo.mock-ai';

onEachStore('the impact of a proposal', (host) => {
  const api = (): Api => host().as('reviewer');
  const impactOf = async (id: string) => (await api().get(`/v1/host/capstan/proposals/${id}/impact`)).body;

  it('of a prompt is on what names no version of it, also by way of an agent', async () => {
    const prompt = template({ kind: 'system' });
    expect((await api().post('/v1/prompts', prompt)).status).toBe(201);
    const ref = `prompt:${prompt.templateId}`;
    const agents = agentPack();
    const [agent] = agents.agents as { agentId: string }[];
    const manifest = { ...agents, agents: [{ ...agent, promptOverrides: { user: ref } }] };
    expect((await api().post('/v1/host/capstan/packs', { manifest })).status).toBe(201);
    const speaking = (systemPromptRef: string) => node('speak', MOCK_AI, { config: { systemPromptRef } });
    const following = await register(api(), workflow([speaking(ref)]));
    const pinned = await register(api(), workflow([speaking(`${ref}@1.0.0`)]));
    const byAgent = await register(
      api(),
      workflow([node('ask', 'core.agents.run', { agent: { agentId: agent!.agentId }, inputs: { task: fixed('x') } })]),
    );
    await register(api(), workflow([node('other')]));
    await api().ended(await api().run(following));
    await api().ended(await api().run(pinned));
    const schedule = (await api().post('/v1/host/capstan/schedules', { workflowId: following, cron: '0 9 * * *' }))
      .body;

    const { id } = await drafted(api(), 'prompt-template', { ...prompt, version: '1.1.0', text: 'Two.' });
    const impact = await impactOf(id);
    expect(impact.changes).toEqual([ref]);
    expect(impact.affected).toHaveLength(4);
    expect(impact.affected).toEqual(
      expect.arrayContaining([
        { kind: 'agent', id: agent!.agentId, ref },
        { kind: 'workflow', id: following, nodeId: 'speak', ref },
        { kind: 'workflow', id: byAgent, nodeId: 'ask', ref, via: agent!.agentId },
        { kind: 'schedule', id: schedule.id, ref: following, via: following },
      ]),
    );
    expect(impact.pinned).toEqual([{ kind: 'workflow', id: pinned, nodeId: 'speak', ref: `${ref}@1.0.0` }]);
    expect(impact.runsLastWeek).toEqual({ total: 1, byWorkflow: { [following]: 1 } });

    const environment = { CAPSTAN_URL: host().url, CAPSTAN_KEY: KEYS.reviewer.key };
    const { out } = await capstan(['proposals', 'impact', id], { environment });
    expect(out).toMatch(new RegExp(`changes\\s+workflow\\s+${following}`));
    expect(out).toMatch(new RegExp(`pinned\\s+workflow\\s+${pinned}`));
  });

  it('of an agent is on the nodes that use its current version', async () => {
    const manifest = agentPack();
    const [{ agentId }] = manifest.agents as [{ agentId: string }];
    expect((await api().post('/v1/host/capstan/packs', { manifest })).status).toBe(201);
    const using = (name: string) =>
      register(
        api(),
        workflow([node('ask', 'core.agents.run', { agent: { agentId: name }, inputs: { task: fixed('x') } })]),
      );
    const [current, fixedOne] = [await using(agentId), await using(`${agentId}@1.0.0`)];
    const { id } = await drafted(api(), 'agent-pack', { ...manifest, version: '1.1.0' });
    const impact = await impactOf(id);
    expect(impact).toMatchObject({
      changes: [`agent:${agentId}`],
      affected: [{ kind: 'workflow', id: current, nodeId: 'ask', ref: agentId }],
      pinned: [{ kind: 'workflow', id: fixedOne, nodeId: 'ask', ref: `${agentId}@1.0.0` }],
    });
  });

  it('of an automation is the runs that it adds, and of a chain nothing, because chains are copied', async () => {
    const spec = { workflowId: 'conformance-noop', cron: '0 9 * * 1-5', timezone: 'UTC' };
    const automation = await drafted(api(), 'automation', spec);
    expect(await impactOf(automation.id)).toMatchObject({ changes: [], affected: [], addedRunsPerWeek: 5 });
    const chain = chainPack();
    const drafting = await drafted(api(), 'workflow-chain-pack', chain);
    expect(await impactOf(drafting.id)).toMatchObject({ changes: [`pack:${chain.name}`], affected: [], pinned: [] });
  });

  it('is for those who may see the proposal', async () => {
    const { id } = await drafted(api(), 'prompt-template', template());
    const path = `/v1/host/capstan/proposals/${id}/impact`;
    expectRefusal(await host().as('other').get(path), 404, 'not_found');
    expectRefusal(await host().as('nothing').get(path), 403, 'forbidden');
  });
});
