import { expect, it } from 'vitest';
import type { Api } from '../support/api.ts';
import { node, register, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { onEachStore, onOneStore } from '../support/stores.ts';

/** What an editor of workflows needs: the versions of a workflow, the node types, and a check before anything is kept. */

onEachStore('the versions of a workflow', (host) => {
  const api = (): Api => host().as('editor');
  const three = async (): Promise<string> => {
    const definition = workflow([node('a')]);
    for (const id of ['a', 'b', 'c']) await register(api(), { ...definition, nodes: [node(id)] });
    return definition.id;
  };

  it('are listed newest first, page by page', async () => {
    const id = await three();
    const { body: first } = await api().get(`${WORKFLOWS}/${id}/versions?limit=2`);
    const { body: last } = await api().get(`${WORKFLOWS}/${id}/versions?limit=2&cursor=${first.nextCursor}`);
    const all = [...first.items, ...last.items];
    expect(all.map(({ registeredVersion }) => registeredVersion)).toEqual([3, 2, 1]);
    expect(all.map(({ current }) => current)).toEqual([true, false, false]);
    expect(last.nextCursor).toBeUndefined();
  });

  it('can be read one by one', async () => {
    const id = await three();
    const nodes = [1, 2, 3].map(async (version) => {
      const { body } = await api().get(`${WORKFLOWS}/${id}/versions/${version}`);
      return body.nodes[0].id;
    });
    expect(await Promise.all(nodes)).toEqual(['a', 'b', 'c']);
    expectRefusal(await api().get(`${WORKFLOWS}/${id}/versions/4`), 404, 'not_found');
  });

  it('are nobody else’s', async () => {
    const id = await three();
    const other = host().as('other');
    expectRefusal(await other.get(`${WORKFLOWS}/${id}/versions`), 404, 'not_found');
    expectRefusal(await other.get(`${WORKFLOWS}/${id}/versions/1`), 404, 'not_found');
    expectRefusal(await host().as('nothing').get(`${WORKFLOWS}/${id}/versions`), 403, 'forbidden');
  });

  it('stay with the runs that use them, also when the workflow is gone', async () => {
    const definition = workflow([node('old')]);
    await register(api(), definition);
    const runId = await api().run(definition.id);
    await api().ended(runId);
    await register(api(), { ...definition, nodes: [node('new')] });
    await api().request('DELETE', `${WORKFLOWS}/${definition.id}`);
    const { status, body } = await api().get(`/v1/host/capstan/runs/${runId}/workflow`);
    expect([status, body]).toEqual([200, definition]);
    expectRefusal(await host().as('other').get(`/v1/host/capstan/runs/${runId}/workflow`), 404, 'not_found');
  });
});

onOneStore('checking a workflow', (host) => {
  const check = (definition: unknown, by: Api = host().as('editor')) => by.post(`${WORKFLOWS}:validate`, definition);

  it('answers with its warnings, and keeps nothing', async () => {
    const child = node('child', 'core.subWorkflow', { config: { workflowId: 'nobody-has-this' } });
    const definition = workflow([child]);
    const { status, body } = await check(definition);
    expect(status).toBe(200);
    expect(body.warnings[0]).toMatchObject({ path: 'nodes[0].config.workflowId', nodeId: 'child' });
    expectRefusal(await host().as('editor').get(`${WORKFLOWS}/${definition.id}`), 404, 'not_found');
  });

  it('refuses what registering would refuse, in the same words', async () => {
    const wrong = workflow([node('a', 'core.subWorkflow')]);
    const [checked, registered] = [await check(wrong), await host().as('editor').post(WORKFLOWS, wrong)];
    expect(checked.status).toBe(422);
    expect(checked.body.details.fields).toEqual(registered.body.details.fields);
    expectRefusal(await check(wrong, host().as('viewer')), 403, 'forbidden');
  });
});

onOneStore('the node types of a host', (host) => {
  it('have the schemas of their configs, and their outputs where these are known', async () => {
    const { status, body } = await host().as('viewer').get('/v1/host/capstan/node-types');
    expect(status).toBe(200);
    const of = (wanted: string) => body.items.find(({ typeId }: { typeId: string }) => typeId === wanted);
    expect(of('core.delay')).toMatchObject({ role: 'pure', gate: false, outputs: ['waitedMs'] });
    expect(of('core.delay').config.properties.delayMs).toMatchObject({ type: 'number' });
    expect(of('core.approvalGate').gate).toBe(true);
    expect(of('core.identity').outputs).toBeUndefined();
    expect(of('core.start').config).toEqual({ type: 'object', properties: {} });
    expectRefusal(await host().as('nothing').get('/v1/host/capstan/node-types'), 403, 'forbidden');
  });
});
