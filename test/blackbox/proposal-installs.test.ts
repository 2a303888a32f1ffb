import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer } from '../support/api.ts';
import { node, register, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { LearningProbe, steadyModel } from '../support/learning-probe.ts';
import {
  agentPack,
  apply,
  chainPack,
  drafted,
  evidenceOf,
  INSTALLED,
  PROPOSALS,
  revise,
  sha256,
  stateOf,
  template,
  tryDraft,
} from '../support/proposals.ts';
import { onEachStore, STORES } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** learning.md 3.6 and 3.7: what is applied has an effect, exactly as it was written, and nothing else has. */

/** A chain whose only node is as given, with these edges. */
const chainOf = (edges: object[], more: object = {}) => {
  const pack = chainPack();
  const [chain] = pack.chains as { dag: { nodes: object[] } }[];
  const dag = { nodes: [{ ...chain!.dag.nodes[0], ...more }], edges };
  return { ...pack, chains: [{ ...chain, dag }] };
};

const agentWith = (more: object) => {
  const pack = agentPack();
  const [agent] = pack.agents as object[];
  return { ...pack, agents: [{ ...agent, ...more }] };
};

describe.each(STORES)('what is learnt, on %s', (store) => {
  let host: TestHost;
  let model: Awaited<ReturnType<typeof steadyModel>>;
  let probe: LearningProbe;
  beforeAll(async () => {
    model = await steadyModel();
    host = await startTestHost(store, inject('postgresUrl'), { models: model.models });
    probe = await LearningProbe.open(host.as('reviewer'));
  });
  afterAll(async () => {
    await host?.stop();
    model.close();
  });

  it('has an effect once it is applied, on things of its kind alone, and none any more once it is uninstalled', async () => {
    const [editor, reviewer] = [host.as('editor'), host.as('reviewer')];
    const before = await probe.look();
    for (const { kind, artifact } of probe.proposed) {
      const { id } = await drafted(editor, kind, artifact);
      expect(await probe.look(), `${kind} drafted`).toEqual(before);
      const { status, body, text } = await apply(reviewer, id);
      expect(status, text).toBe(200);
      const after = await probe.look();
      expect(after[kind], `${kind} applied`).not.toEqual(before[kind]);
      expect({ ...after, [kind]: before[kind] }, `others beside ${kind}`).toEqual(before);
      expect((await reviewer.request('DELETE', `${INSTALLED}/${body.installedArtifactRef}`)).status).toBe(204);
      expect(await probe.look(), `${kind} uninstalled`).toEqual(before);
    }
  });

  it('is what later runs get: the prompt, the chain, the agent, the times', async () => {
    const [editor, reviewer] = [host.as('editor'), host.as('reviewer')];
    const refs: string[] = [];
    for (const { kind, artifact } of probe.proposed) {
      const { id } = await drafted(editor, kind, artifact);
      refs.push((await apply(reviewer, id)).body.installedArtifactRef);
    }
    const seen = (await probe.look()) as Record<string, Answer['body']>;
    const resolved = seen['prompt-template'].find(({ type }: Answer['body']) => type === 'agent.promptResolved');
    expect(resolved.payload.resolved).toMatch(/@1\.1\.0$/);
    expect(seen['workflow-chain-pack']).toMatchObject({
      status: 200,
      reply: { packVersion: '1.1.0', chainId: 'more' },
    });
    expect(seen['agent-pack'].at(-1).type).toBe('run.completed');
    expect(seen.automation).toEqual([{ cron: '* * * * * *', timezone: 'Europe/Berlin' }]);
    const [fired] = await until(
      async () => (await editor.get(`/v1/host/capstan/runs?workflowId=${probe.workflows.timed}`)).body.items,
      (items) => items.length > 0,
    );
    expect((await editor.ended(fired.runId)).metadata.scheduleId).toMatch(/^sch-/);
    for (const ref of refs) expect((await reviewer.request('DELETE', `${INSTALLED}/${ref}`)).status).toBe(204);
  });

  it('belongs to its proposal: a schedule is changed and removed there', async () => {
    const [editor, reviewer] = [host.as('editor'), host.as('reviewer')];
    const artifact = { workflowId: probe.workflows.timed, cron: '0 9 1 1 *' };
    const { id } = await drafted(editor, 'automation', artifact);
    const { installedArtifactRef } = (await apply(reviewer, id)).body;
    const [schedule] = (await editor.get(`/v1/host/capstan/schedules?workflowId=${artifact.workflowId}`)).body.items;
    expect(schedule).toMatchObject({ belongsTo: `proposal:${id}`, cron: '0 9 1 1 *' });
    expectRefusal(await editor.request('DELETE', `/v1/host/capstan/schedules/${schedule.id}`), 409, 'conflict');
    expect((await reviewer.request('DELETE', `${INSTALLED}/${installedArtifactRef}`)).status).toBe(204);
    expect((await editor.get(`/v1/host/capstan/schedules/${schedule.id}`)).status).toBe(404);
  });
});

onEachStore('what is installed', (host) => {
  const editor = () => host().as('editor');
  const reviewer = () => host().as('reviewer');
  const installed = async (ref: string): Promise<Answer['body']> => (await editor().get(`${INSTALLED}/${ref}`)).body;

  it('is what was written last, to the letter, however oddly', async () => {
    const { id } = await drafted(editor(), 'prompt-template', template());
    const { templateId } = template();
    const texts = [
      `{"version" : "1.0.0","templateId":"${templateId}",  "text":"é\\u00e9 \\ud83d\\ude00 😀 \\u2028 ‮", "kind":"user",
        "modelHints":{"temperature":1.0,"maxTokens":1e2}}`,
      `{"version":"1.0.0","kind":"user","modelHints":{"maxTokens":100,"temperature":0.70},"text":"a\\/b","templateId":"${templateId}"}`,
    ];
    for (const text of texts) {
      const { status, text: body } = await revise(editor(), id, `{"note":"\\"artifact\\":{}","artifact": ${text} }`);
      expect(status, body).toBe(200);
      expect(body).toContain(text);
      expect((await editor().get(`${PROPOSALS}/${id}`)).text).toContain(text);
    }
    const { installedArtifactRef: ref } = (await apply(reviewer(), id)).body;
    expect(await installed(ref)).toEqual({
      ref,
      kind: 'prompt-template',
      proposalId: id,
      text: texts[1],
      sha256: sha256(texts[1]!),
      installedAt: expect.any(String),
      installedBy: 'reviewer-of-alpha',
    });
    const { body } = await editor().get(`/v1/prompts/${templateId}`);
    expect(body).toMatchObject({ text: 'a/b', modelHints: { maxTokens: 100, temperature: 0.7 } });
  });

  it('is the very file of a pack', async () => {
    const { id } = await drafted(editor(), 'workflow-chain-pack', chainPack());
    const text = JSON.stringify(chainPack(), null, 3).replace('"x": 1', '"x": 1.0');
    await revise(editor(), id, `{"artifact":${text}}`);
    const { installedArtifactRef } = (await apply(reviewer(), id)).body;
    expect((await installed(installedArtifactRef)).text).toBe(text);
    const pack = (await editor().get(`/v1/host/capstan/packs/${JSON.parse(text).name}`)).body;
    expect(pack.file).toBe(text);
    expect(pack.provenance).toMatchObject({ source: 'proposal', proposalId: id, installedBy: 'reviewer-of-alpha' });
  });

  it('is never another thing than the one that people were shown', async () => {
    const { id } = await drafted(editor(), 'prompt-template', template());
    const twice = await revise(editor(), id, '{"artifact":{"templateId":"a","text":"harmless","text":"harmful"}}');
    expectRefusal(twice, 400, 'validation_error');
    expect(twice.body.details.field).toBe('artifact/text');
  });

  it('fits its kind, or is refused with the place, as soon as it is written', async () => {
    const misfits: [string, object, object, string][] = [
      ['prompt-template', template(), template({ kind: 'shout' }), '/kind'],
      ['prompt-template', template(), { text: 'alone' }, '/templateId'],
      ['workflow-chain-pack', chainPack(), chainPack({ chains: [] }), '/chains'],
      ['workflow-chain-pack', chainPack(), agentPack(), '/chains'],
      ['workflow-chain-pack', chainPack(), chainPack({ name: 'core.openwop.mine' }), '/name'],
      ['workflow-chain-pack', chainPack(), chainOf([{ from: 'only', to: 'gone' }]), '/chains/0/dag/edges/0/to'],
      ['workflow-chain-pack', chainPack(), chainOf([], { typeId: 'acme.none' }), '/chains/0/dag/nodes/0/typeId'],
      [
        'workflow-chain-pack',
        chainPack(),
        chainOf([], { typeId: 'core.agents.run', config: { agentId: 'acme.nobody' } }),
        '/chains/0/dag/nodes/0/config/agentId',
      ],
      [
        'workflow-chain-pack',
        chainPack(),
        chainOf([], { typeId: 'core.agents.run', config: { tools: ['acme:none'] } }),
        '/chains/0/dag/nodes/0/config/tools/0',
      ],
      [
        'workflow-chain-pack',
        chainPack(),
        chainOf([], { typeId: 'core.ai.chatCompletion', config: { userPromptRef: 'prompt:nowhere@1.0.0' } }),
        '/chains/0/dag/nodes/0/config',
      ],
      ['agent-pack', agentPack(), agentWith({ toolAllowlist: ['acme:none'] }), '/agents/0/toolAllowlist/0'],
      [
        'agent-pack',
        agentPack(),
        agentWith({ promptOverrides: { user: 'prompt:nowhere' } }),
        '/agents/0/promptOverrides',
      ],
      ['agent-pack', agentPack(), agentPack({ agents: [{ agentId: 'nobody' }] }), '/agents/0/persona'],
      [
        'automation',
        { workflowId: 'conformance-noop', cron: '0 9 * * *' },
        { workflowId: 'nowhere', cron: '0 9 * * *' },
        '/workflowId',
      ],
      [
        'automation',
        { workflowId: 'conformance-noop', cron: '0 9 * * *' },
        { workflowId: 'conformance-noop', cron: 'often' },
        '/cron',
      ],
    ];
    for (const [kind, good, bad, path] of misfits) {
      expectRefusal(await tryDraft(editor(), kind, bad as never), 422, 'validation_error');
      const { id } = await drafted(editor(), kind, good as never);
      expect((await evidenceOf(editor(), id)).obstacle).toBeUndefined();
      const refused = await revise(editor(), id, { artifact: bad });
      expectRefusal(refused, 422, 'validation_error');
      expect(refused.body.details.path, `${kind} ${JSON.stringify(refused.body)}`).toBe(path);
      expect(await stateOf(editor(), id)).toBe('draft');
      expect((await evidenceOf(editor(), id)).revisions).toHaveLength(1);
    }
  });

  it('that refers to something that is gone by now is not installed, and can still be renamed', async () => {
    const workflowId = await register(editor(), workflow([node('only')]));
    const { id } = await drafted(editor(), 'automation', { workflowId, cron: '0 9 * * *' });
    await editor().request('DELETE', `/v1/host/capstan/workflows/${workflowId}`);
    expect((await evidenceOf(editor(), id)).obstacle.path).toBe('/workflowId');
    expect((await revise(editor(), id, { title: 'Gone' })).status).toBe(200);
    const refused = await apply(reviewer(), id);
    expectRefusal(refused, 422, 'validation_error');
    expect(refused.body.details.path).toBe('/workflowId');
  });

  it('is made for the world as it is: what it would take the place of must not have changed', async () => {
    const base = template();
    await editor().post('/v1/prompts', base);
    const { id } = await drafted(editor(), 'prompt-template', { ...base, version: '1.2.0' });
    await editor().request('PUT', `/v1/prompts/${base.templateId}`, { ...base, version: '1.1.0' });
    const refused = await apply(reviewer(), id);
    expectRefusal(refused, 409, 'conflict');
    expect(refused.body.details).toEqual({ reason: 'stale', current: `prompt:${base.templateId}@1.1.0` });
    expect(await stateOf(editor(), id)).toBe('draft');
    expect((await evidenceOf(editor(), id)).obstacle).toMatchObject(refused.body.details);
    await revise(editor(), id, { note: 'still wanted' });
    const { installedArtifactRef } = (await apply(reviewer(), id)).body;
    expect((await installed(installedArtifactRef)).replaces).toBe(`prompt:${base.templateId}@1.1.0`);
    expect((await reviewer().request('DELETE', `${INSTALLED}/${installedArtifactRef}`)).status).toBe(204);
    expect((await editor().get(`/v1/prompts/${base.templateId}`)).body.version).toBe('1.1.0');
  });

  it('is stale where schedules of the workflow, or the pack, have changed', async () => {
    const automation = await drafted(editor(), 'automation', { workflowId: 'conformance-noop', cron: '0 9 * * *' });
    const body = { workflowId: 'conformance-noop', cron: '0 0 1 1 *' };
    const made = (await editor().post('/v1/host/capstan/schedules', body)).body;
    expect((await apply(reviewer(), automation.id)).body.details).toMatchObject({ reason: 'stale' });
    await editor().request('DELETE', `/v1/host/capstan/schedules/${made.id}`);
    const pack = chainPack();
    const chain = await drafted(editor(), 'workflow-chain-pack', { ...pack, version: '2.0.0' });
    await reviewer().post('/v1/host/capstan/packs', { manifest: pack });
    expect((await apply(reviewer(), chain.id)).body.details).toEqual({
      reason: 'stale',
      current: `pack:${pack.name}@1.0.0`,
    });
  });

  it('is put into use once where several proposals are for the same place, and applied at the same time', async () => {
    const pack = chainPack();
    const rivals = {
      automation: ['0 9 * * *', '0 10 * * *', '0 11 * * *'].map((cron) => ({ workflowId: 'conformance-noop', cron })),
      'workflow-chain-pack': ['1.1.0', '1.2.0', '1.3.0'].map((version) => ({ ...pack, version })),
    };
    for (const [kind, artifacts] of Object.entries(rivals)) {
      const drafts = await Promise.all(artifacts.map((artifact) => drafted(editor(), kind, artifact)));
      const answers = await Promise.all(drafts.map(({ id }) => apply(reviewer(), id)));
      expect(answers.map(({ status }) => status).toSorted(), kind).toEqual([200, 409, 409]);
      for (const { status, body } of answers) {
        if (status === 409) expect(body.details).toMatchObject({ reason: 'stale' });
        else await reviewer().request('DELETE', `${INSTALLED}/${body.installedArtifactRef}`);
      }
    }
  });

  it('is never a version that there is already', async () => {
    const base = template();
    await editor().post('/v1/prompts', base);
    const { id } = await drafted(editor(), 'prompt-template', { ...base, text: 'other' });
    const refused = await apply(reviewer(), id);
    expectRefusal(refused, 409, 'conflict');
    expect((await evidenceOf(editor(), id)).obstacle.message).toBe(refused.body.message);
    expect((await editor().get(`/v1/prompts/${base.templateId}`)).body.text).toBe(base.text);
  });

  it('is shown against what it would take the place of', async () => {
    const base = template();
    await editor().post('/v1/prompts', base);
    const { id } = await drafted(editor(), 'prompt-template', { ...base, version: '1.1.0', text: 'Two.' });
    const changes = async (proposalId: string): Promise<string[] | undefined> =>
      (await evidenceOf(editor(), proposalId)).change?.split('\n').filter((line: string) => /^[+-]/.test(line));
    expect(await changes(id)).toEqual([
      '-  "version": "1.0.0",',
      '+  "version": "1.1.0",',
      `-  "text": "${base.text}"`,
      '+  "text": "Two."',
    ]);

    const pack = chainPack();
    await reviewer().post('/v1/host/capstan/packs', { manifest: pack });
    const chain = await drafted(editor(), 'workflow-chain-pack', { ...pack, version: '2.0.0' });
    expect(await changes(chain.id)).toEqual(['-  "version": "1.0.0",', '+  "version": "2.0.0",']);
    expect(await changes((await drafted(editor(), 'prompt-template', template())).id)).toBeUndefined();
  });

  it('is foreseen as it is now: when an automation would fire', async () => {
    const [workflowId, hour] = ['conformance-noop', /T\d\d/];
    const { id } = await drafted(editor(), 'automation', { workflowId, cron: '0 9 * * *' });
    const hours = async () =>
      (await evidenceOf(editor(), id)).preview.nextFirings.map((time: string) => hour.exec(time)?.[0]);
    expect(await hours()).toEqual(Array(5).fill('T09'));
    await revise(editor(), id, { artifact: { workflowId, cron: '0 4 * * *' } });
    expect(await hours()).toEqual(Array(5).fill('T04'));
    await revise(editor(), id, { artifact: { workflowId, runAt: new Date(Date.now() + 3_600_000).toISOString() } });
    expect(await hours()).toHaveLength(1);
  });

  it('is listed, without its text, until it is taken back', async () => {
    const { id } = await drafted(editor(), 'prompt-template', template());
    const { installedArtifactRef: ref } = (await apply(reviewer(), id)).body;
    const listed = async () => (await editor().get(`${INSTALLED}?limit=1`)).body.items;
    expect(await listed()).toEqual([expect.objectContaining({ ref, proposalId: id, kind: 'prompt-template' })]);
    expect((await listed())[0]).not.toHaveProperty('text');
    expectRefusal(await editor().request('DELETE', `${INSTALLED}/${ref}`), 403, 'forbidden');
    await reviewer().request('DELETE', `${INSTALLED}/${ref}`);
    expect(await listed()).not.toEqual([expect.objectContaining({ ref })]);
    expectRefusal(await editor().get(`${INSTALLED}/${ref}`), 404, 'not_found');
  });

  it('is taken back under later versions, which stay', async () => {
    const base = template();
    await editor().post('/v1/prompts', base);
    const { id } = await drafted(editor(), 'prompt-template', { ...base, version: '1.1.0' });
    const { installedArtifactRef: ref } = (await apply(reviewer(), id)).body;
    await editor().request('PUT', `/v1/prompts/${base.templateId}`, { ...base, version: '1.2.0' });
    expect((await reviewer().request('DELETE', `${INSTALLED}/${ref}`)).status).toBe(204);
    expect((await editor().get(`/v1/prompts/${base.templateId}`)).body.version).toBe('1.2.0');
    expect((await editor().get(`/v1/prompts/${base.templateId}?version=1.1.0`)).status).toBe(404);
  });
});

onEachStore('proposals of others', (host) => {
  const editor = () => host().as('editor');

  it('are not there', async () => {
    const other = host().as('other');
    const { id } = await drafted(editor(), 'prompt-template', template());
    const { id: applied } = await drafted(editor(), 'prompt-template', template());
    const { installedArtifactRef: ref } = (await apply(host().as('reviewer'), applied)).body;
    for (const base of [PROPOSALS, '/v1/host/sample/proposals']) {
      for (const [method, path] of [
        ['GET', `${base}/${id}`],
        ['PATCH', `${base}/${id}`],
        ['POST', `${base}/${id}/apply`],
        ['POST', `${base}/${id}/reject`],
        ['DELETE', `${base}/${id}`],
      ] as const) {
        const answer = await other.request(method, path, method === 'PATCH' ? { note: 'mine' } : undefined);
        expectRefusal(answer, 404, 'not_found');
      }
    }
    expectRefusal(await other.get(`/v1/host/capstan/proposals/${id}/evidence`), 404, 'not_found');
    expectRefusal(await other.get(`${INSTALLED}/${ref}`), 404, 'not_found');
    expectRefusal(await other.request('DELETE', `${INSTALLED}/${ref}`), 404, 'not_found');
    expect((await other.get(`${PROPOSALS}`)).text).not.toContain(id);
    expect((await other.get(INSTALLED)).body.items).toEqual([]);
    expect(await stateOf(editor(), id)).toBe('draft');
  });

  it('are not there for another workspace, and are installed where they belong', async () => {
    const north = host().as('workspace');
    const { id } = await drafted(editor(), 'prompt-template', template());
    expectRefusal(await north.get(`${PROPOSALS}/${id}`), 404, 'not_found');
    const artifact = template();
    const ours = await drafted(north, 'prompt-template', artifact);
    expect((await apply(host().as('reviewer'), ours.id)).status).toBe(200);
    expect((await north.get(`/v1/prompts/${artifact.templateId}`)).status).toBe(200);
    expect((await editor().get(`/v1/prompts/${artifact.templateId}`)).status).toBe(404);
  });
});
