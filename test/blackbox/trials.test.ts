import { expect, it } from 'vitest';
import { Api } from '../support/api.ts';
import { readStore } from '../support/database.ts';
import { expectRefusal } from '../support/envelope.ts';
import { onEachStore } from '../support/stores.ts';

/** Goal: whoever builds a workflow can try one of its nodes. Method: nodes whose outcome is known, tried alone. */

const TRIALS = '/v1/host/capstan/trials';

onEachStore('a trial of a node', (host) => {
  const editor = (): Api => host().as('editor');
  const tried = async (body: object) => {
    const { status, body: reply } = await editor().post(TRIALS, body);
    expect(status).toBe(201);
    return editor().ended(reply.runId);
  };

  it('runs with its config and inputs, and leaves no workflow behind', async () => {
    const before = (await editor().get('/v1/host/capstan/workflows?limit=200')).body.items.length;
    const inputs = { template: 'Hello {{name}}', name: 'Ada' };
    const request = { typeId: 'core.openwop.data.string-format', inputs };
    const first = await tried(request);
    expect(first).toMatchObject({ status: 'completed', nodeStates: { node: { status: 'completed' } } });
    expect(first.nodeStates.node.outputs).toEqual({ text: 'Hello Ada' });
    expect((await tried({ typeId: 'core.fail', config: { message: 'as told' } })).error.message).toContain('as told');
    expect((await editor().get('/v1/host/capstan/workflows?limit=200')).body.items.length).toBe(before);
    expectRefusal(await editor().post('/v1/runs', { workflowId: first.workflowId }), 404, 'not_found');
    // The same content is the same definition, and its run is read as any other.
    const second = await tried(request);
    expect(second.workflowId).toBe(first.workflowId);
    expect((await editor().get(`/v1/host/capstan/runs/${second.runId}/workflow`)).body.nodes).toHaveLength(1);
  });

  it('is no run in the figures of people, and its definition goes with the last run that uses it', async () => {
    const counted = async () => (await editor().get('/v1/host/capstan/feedback/summary')).body.runs;
    const before = await counted();
    const { runId, workflowId, tags } = await tried({ typeId: 'core.noop', config: { ms: 1 } });
    expect(tags).toEqual(['capstan:trial']);
    const fork = await editor().post(`/v1/runs/${runId}:fork`, { mode: 'branch', fromSeq: 1 });
    await editor().ended(fork.body.runId);
    expect(await counted()).toBe(before);

    const definitions = async (): Promise<number> =>
      (await readStore(host().config, `SELECT owner FROM definitions WHERE workflow_id = '${workflowId}'`)).length;
    const expire = async (expiring: string) =>
      expect((await editor().post(`/v1/host/sample/test/force-expire/${expiring}`)).status).toBe(204);
    await expire(runId);
    expect(await definitions()).toBe(1);
    await expire(fork.body.runId);
    expect(await definitions()).toBe(0);
  });

  it('is refused as a workflow with such a node would be', async () => {
    expectRefusal(await editor().post(TRIALS, { typeId: 'core.no-such-node' }), 422, 'validation_error');
    expectRefusal(await editor().post(TRIALS, {}), 400, 'validation_error');
  });

  it('needs both scopes: to write workflows, and to start runs', async () => {
    expectRefusal(await host().as('viewer').post(TRIALS, { typeId: 'core.noop' }), 403, 'forbidden');
    const { body } = await host()
      .as('owner')
      .post('/v1/host/capstan/keys', { name: 'w', scopes: ['workflows:write'] });
    const writer = new Api(host().url, body.key);
    expectRefusal(await writer.post(TRIALS, { typeId: 'core.noop' }), 403, 'forbidden');
  });
});
