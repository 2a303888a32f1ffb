import { describe, expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { unique } from '../support/definitions.ts';
import { resolve, waitingRun } from '../support/interrupts.ts';
import { RegistryPages } from '../support/pack-registry.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onEachStore } from '../support/stores.ts';

/** execution.md 6, learning.md 5.1: packs of agents and their inventory, over the wire. */

type Body = Answer['body'];

const PACKS = '/v1/host/capstan/packs';
const PROMPT = 'You sort tickets by urgency.';
const schemas = loadSchemas();

const agentPack = (agent: object = {}, more: object = {}): Body => {
  const name = `vendor.acme.${unique('support')}`;
  return {
    name,
    version: '1.0.0',
    engines: { openwop: '>=1.1.0 <2.0.0' },
    runtime: { language: 'remote', entry: 'pack.json' },
    agents: [
      {
        agentId: `${name}.triage`,
        persona: 'Triage',
        modelClass: 'classification',
        systemPrompt: PROMPT,
        toolAllowlist: ['capstan.kv:get'],
        ...agent,
      },
    ],
    ...more,
  };
};
const idOf = (manifest: Body): string => manifest.agents[0].agentId;
const install = (api: Api, body: object): Promise<Answer> => api.post(PACKS, body);
const installed = async (api: Api, manifest: Body): Promise<string> => {
  const answer = await install(api, { manifest });
  expect(answer.status, answer.text).toBe(201);
  return idOf(manifest);
};

onEachStore('agents', (host) => {
  const api = (): Api => host().as('reviewer');

  describe('come with packs', () => {
    it('and are listed by their ids, without what makes them tick', async () => {
      const agentId = await installed(
        api(),
        agentPack({
          label: 'Triage of tickets',
          description: 'Sorts',
          confidence: { defaultThreshold: 0.8 },
          memoryShape: { scratchpad: true },
          requiresCapabilities: ['kvStorage', 'aiProviders.teleportation'],
        }),
      );
      const list = await api().get('/v1/agents');
      expect(list.status).toBe(200);
      expect(schemas.agentInventory(list.body)).toEqual([]);
      const ids = list.body.agents.map((agent: Body) => agent.agentId);
      expect(ids).toEqual([...ids].sort());
      expect(list.body.total).toBe(ids.length);
      const one = await api().get(`/v1/agents/${agentId}`);
      expect(one.body).toEqual({
        agentId,
        persona: 'Triage',
        label: 'Triage of tickets',
        description: 'Sorts',
        modelClass: 'classification',
        packName: agentId.replace('.triage', ''),
        packVersion: '1.0.0',
        toolAllowlist: ['capstan.kv:get'],
        hasHandoffSchemas: false,
        memoryShape: { scratchpad: true },
        confidenceThreshold: 0.8,
        degraded: ['aiProviders.teleportation'],
      });
      expect(list.body.agents).toContainEqual(one.body);
      expect(list.text).not.toContain(PROMPT);
    });

    it('with texts of their own, from a registry or from the request', async () => {
      const registry = new RegistryPages();
      const served = await registry.serve();
      const manifest = agentPack({ systemPrompt: undefined, systemPromptRef: 'prompts/triage.md' });
      registry.publish(manifest, {}, { 'prompts/triage.md': PROMPT });
      const fetched = await install(api(), { registry: served.url, name: manifest.name });
      served.close();
      expect(fetched.status, fetched.text).toBe(201);
      expect(fetched.body).toMatchObject({
        kind: 'node',
        agents: [{ agentId: idOf(manifest), persona: 'Triage', modelClass: 'classification' }],
      });

      const brought = agentPack({
        systemPrompt: undefined,
        systemPromptRef: 'triage.md',
        handoff: { taskSchemaRef: 'task.json' },
      });
      const files = { 'triage.md': PROMPT, 'task.json': '{"type":"object"}' };
      expect((await install(api(), { manifest: brought, files })).status).toBe(201);
      expect((await api().get(`/v1/agents/${idOf(brought)}`)).body.hasHandoffSchemas).toBe(true);
      const changed = await install(api(), { manifest: brought, files: { ...files, 'triage.md': 'Other words.' } });
      expect([changed.status, changed.body.error]).toEqual([409, 'version_conflict']);
    });

    it('but not with refs that lead nowhere, and then nothing is installed', async () => {
      const manifest = agentPack({ systemPrompt: undefined, systemPromptRef: 'prompts/triage.md' });
      const answer = await install(api(), { manifest, files: { 'prompts/other.md': PROMPT } });
      expect([answer.status, answer.body.error, answer.body.details.path]).toEqual([
        400,
        'invalid_manifest',
        '/agents/0/systemPromptRef',
      ]);
      expect((await api().get(`/v1/agents/${idOf(manifest)}`)).status).toBe(404);
      expect((await api().get(`${PACKS}/${manifest.name}`)).status).toBe(404);
    });

    it('that need what is not here not at all, or as far as they can', async () => {
      const peerDependencies = { 'host.agentRuntime': 'supported' };
      const refused = await install(api(), { manifest: agentPack({}, { peerDependencies }) });
      expect([refused.status, refused.body.error]).toEqual([400, 'pack_peer_dependency_missing']);
      const peerDependenciesMeta = { 'host.agentRuntime': { optional: true } };
      const agentId = await installed(
        api(),
        agentPack({ memoryShape: { conversation: true } }, { peerDependencies, peerDependenciesMeta }),
      );
      expect((await api().get(`/v1/agents/${agentId}`)).body).toMatchObject({
        degraded: ['host.agentRuntime'],
        memoryDegraded: true,
        degradedMemoryDimensions: ['read', 'write'],
      });
    });

    it('and say which of their tools this host does not have', async () => {
      const toolAllowlist = [
        'capstan.kv:get',
        'openwop:core.openwop.data.csv-parse',
        'openwop:core.delay',
        'openwop:core.none',
        'mcp:nowhere.search',
        'plain',
      ];
      const agentId = await installed(api(), agentPack({ toolAllowlist }));
      const { body } = await api().get(`/v1/agents/${agentId}`);
      expect(body).toMatchObject({ toolAllowlist, degraded: toolAllowlist.slice(2) });
    });

    it('and go with them; the version before is in use again', async () => {
      const manifest = agentPack();
      const agentId = await installed(api(), manifest);
      const second = { ...manifest, version: '2.0.0', agents: [{ ...manifest.agents[0], persona: 'Second' }] };
      await installed(api(), second);
      const personaOf = async (): Promise<string | undefined> =>
        (await api().get(`/v1/agents/${agentId}`)).body.persona;
      expect(await personaOf()).toBe('Second');
      await api().request('DELETE', `${PACKS}/${manifest.name}`);
      expect(await personaOf()).toBe('Triage');
      await api().request('DELETE', `${PACKS}/${manifest.name}`);
      expect((await api().get(`/v1/agents/${agentId}`)).status).toBe(404);
    });

    it('whose names mean one agent each', async () => {
      const manifest = agentPack();
      await installed(api(), manifest);
      const rival = { ...manifest, name: `vendor.acme.${unique('rival')}` };
      const answer = await install(api(), { manifest: rival });
      expect([answer.status, answer.body.details]).toEqual([409, { agentId: idOf(manifest), packName: manifest.name }]);
    });

    it('that others do not see', async () => {
      const agentId = await installed(api(), agentPack());
      const other = host().as('other');
      expect((await other.get(`/v1/agents/${agentId}`)).status).toBe(404);
      expect((await other.get('/v1/agents')).text).not.toContain(agentId);
      expect((await host().as('nothing').get('/v1/agents')).status).toBe(403);
    });
  });

  describe('of conformance suites', () => {
    const editor = (): Api => host().as('editor');
    const AGENT_EVENTS = /^agent\.(reasoned|toolCalled|toolReturned|handoff|decided)$/;

    it('are there to be started, and one comes with a pack', async () => {
      const { body } = await host().anonymous.get('/.well-known/openwop');
      expect(body.conformance).toMatchObject({ mockAgent: true });
      expect(body.fixtures).toEqual(
        expect.arrayContaining([
          'conformance-agent-identity',
          'conformance-agent-reasoning',
          'conformance-agent-low-confidence',
        ]),
      );
      const agent = await editor().get('/v1/agents/core.conformance.pack-installed-agent');
      expect(agent.body).toMatchObject({ packName: 'core.conformance.agent-pack', toolAllowlist: [] });
      const { packs } = (await editor().get('/v1/packs')).body;
      expect(packs.flatMap(({ agents }: Body) => agents)).toContainEqual({
        agentId: 'core.conformance.pack-installed-agent',
        persona: 'Agent from a pack',
        modelClass: 'general',
      });
      const run = await editor().ended(await editor().run('conformance-agent-pack-provenance'));
      expect(run.agent).toMatchObject({ sourceManifestId: 'core.conformance.agent-pack.installed-agent' });
    });

    it('tell what they do, each return because of its call, and the same again on a replay', async () => {
      const runId = await editor().run('conformance-agent-reasoning');
      expect((await editor().ended(runId)).agent).toEqual({
        agentId: 'core.conformance.reasoning-agent',
        modelClass: 'reasoning',
      });
      const events = (await editor().events(runId)).filter(({ type }) => AGENT_EVENTS.test(type));
      expect(events.map(({ type }) => type)).toEqual([
        'agent.reasoned',
        'agent.toolCalled',
        'agent.toolReturned',
        'agent.handoff',
        'agent.decided',
      ]);
      const [, called, returned] = events;
      expect(returned.causationId).toBe(called.eventId);
      expect(returned.payload.callId).toBe(called.payload.callId);
      for (const { type, payload } of events) expect(schemas.payload(type)?.(payload)).toEqual([]);
      const { body } = await editor().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq: 0 });
      await editor().ended(body.runId);
      const replayed = (await editor().events(body.runId)).filter(({ type }) => AGENT_EVENTS.test(type));
      expect(replayed.map(({ type, payload }) => [type, payload])).toEqual(
        events.map(({ type, payload }) => [type, payload]),
      );
      expect(replayed[2].causationId).toBe(replayed[1].eventId);
    });

    it('wait for a person when they are not sure', async () => {
      const waiting = await waitingRun(editor(), 'conformance-agent-low-confidence');
      expect(waiting.status).toBe('waiting-approval');
      const events = await editor().events(waiting.runId);
      expect(events.find(({ type }) => type === 'node.suspended').payload).toMatchObject({
        reason: 'low-confidence',
        agentId: 'core.conformance.low-conf-decider',
        threshold: 0.7,
        observed: 0.5,
      });
      await resolve(editor(), waiting.runId, 'low-conf-decider', { kind: 'ratified' });
      const ended = await editor().ended(waiting.runId);
      expect(ended.nodeStates['low-conf-decider'].outputs).toEqual({ decision: { kind: 'ratified' } });
    });
  });
});
