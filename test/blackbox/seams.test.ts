import { expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { unique, WORKFLOWS } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { KEYS } from '../support/host.ts';
import { onOneStore } from '../support/stores.ts';

/** The seams by which conformance suites witness what discovery claims: each does the real thing. */

type Body = Answer['body'];

const SAMPLE = '/v1/host/sample';

onOneStore('the test seams', (host) => {
  const api = (): Api => host().as('editor');
  const seam = (path: string, body: object = {}, by = api()): Promise<Answer> => by.post(`${SAMPLE}/${path}`, body);
  const logOf = async (runId: string, query = '', by = api()): Promise<Body[]> => {
    const { status, body } = await by.get(`${SAMPLE}/test/runs/${runId}/events${query}`);
    expect(status).toBe(200);
    return body.events;
  };
  const types = (events: Body[]): string[] => events.map(({ type }) => type);

  it('tell the log of a run, by type and by node, and of no run of another tenant', async () => {
    const runId = await api().run('conformance-multi-node');
    await api().ended(runId);
    expect(await logOf(runId)).toEqual(await api().events(runId));
    expect(types(await logOf(runId, '?type=node.completed'))).toEqual([
      'node.completed',
      'node.completed',
      'node.completed',
    ]);
    expect((await logOf(runId, '?type=node.completed&nodeId=b')).map(({ nodeId }) => nodeId)).toEqual(['b']);
    expect(await logOf(runId, '', host().as('other'))).toEqual([]);
    expect(await logOf('__probe__')).toEqual([]);
  });

  it('exhaust a budget: warned, exhausted, breached, failed, in this order', async () => {
    const { status, body } = await seam('budget/run', { scenario: 'hard-cost-exhaust' });
    expect([status, body.outcome, body.error]).toEqual([200, 'failed', 'budget_exhausted']);
    const told = await logOf(body.runId);
    const order = ['budget.reserved', 'budget.threshold.crossed', 'budget.exhausted', 'cap.breached', 'run.failed'];
    expect(types(told).filter((type) => order.includes(type))).toEqual(order);
    expect(told.find(({ type }) => type === 'budget.threshold.crossed').payload.percent).toBe(80);
    expect(told.find(({ type }) => type === 'cap.breached').payload.kind).toBe('budget-cost');
    expect(told.at(-1).payload.error).toBe('budget_exhausted');
    const [real] = (await api().events(body.runId)).slice(-1);
    expect(real.payload.error).toMatchObject({ code: 'budget_exhausted' });
  });

  it('deny a model before it is asked, and know no advisory budget', async () => {
    const { body } = await seam('budget/run', { scenario: 'model-denied' });
    expect(body).toMatchObject({ error: 'budget_model_denied', modelCalled: false });
    expectRefusal(await seam('budget/run', { scenario: 'advisory' }), 501, 'capability_not_provided');
  });

  it('run an agent: its first event and its last are those of one invocation', async () => {
    const { status, body } = await seam('agents/live-invoke', { source: 'run-api' });
    expect([status, body.outcome]).toEqual([200, 'completed']);
    const agent = (await logOf(body.runId)).filter(({ type }) => type.startsWith('agent.'));
    expect(types(agent)[0]).toBe('agent.invocation.started');
    expect(types(agent).at(-1)).toBe('agent.invocation.completed');
    const ids = [agent[0], agent.at(-1)].map(({ payload }) => payload.invocationId);
    expect(ids).toEqual([body.invocationId, body.invocationId]);
  });

  it('run an agent whose result does not fit, and one that wants a tool it may not use', async () => {
    const strict = { returnSchemaRef: 'conformance-strict-handoff' };
    const invalid = await seam('agents/live-invoke', { ...strict, forceInvalidResult: true });
    expect(invalid.body.outcome).toBe('failed');
    const [end] = (await logOf(invalid.body.runId, '?type=agent.invocation.completed')).slice(-1);
    expect(end.payload.outcome).toBe('failed');
    expect(end.payload.schemaValidated).not.toBe(true);
    expect((await seam('agents/live-invoke', strict)).body.outcome).toBe('completed');
    const tool = 'conformance-disallowed-tool';
    const { body } = await seam('agents/live-invoke', { attemptTool: tool });
    expect(body.outcome).toBe('completed');
    const returned = await logOf(body.runId, '?type=agent.toolReturned');
    expect(returned.map(({ payload }) => payload.status)).toEqual(['forbidden']);
  });

  it('hand a task to an agent, and tell what it did under its name', async () => {
    const { agents } = (await api().get('/v1/agents')).body;
    for (const { agentId } of agents as Body[]) {
      const { status, body } = await seam(`agents/${agentId}/dispatch`, { task: {}, validateHandoff: false });
      expect([status, body.status], JSON.stringify(body)).toEqual([200, 'completed']);
      expect(types(body.events)).toEqual(expect.arrayContaining(['agent.reasoned', 'agent.decided']));
      expect(body.events.every((event: Body) => event.agentId === agentId)).toBe(true);
    }
    const strict = await seam('agents/core.openwop.agent-examples.structured-fixture/dispatch', { task: {} });
    expect(strict.body).toMatchObject({ status: 'failed', error: { code: 'handoff_task_schema_violation' } });
    expectRefusal(await seam('agents/core.nobody.here/dispatch'), 404, 'not_found');
  });

  it('register a workflow from its nodes alone: a dispatch leads back to its supervisor', async () => {
    const workflowId = unique('sketch');
    const plan = [
      { kind: 'next-worker', nextWorkerIds: ['conformance-dispatch-deterministic-fail-child'] },
      { kind: 'terminate' },
    ];
    const nodes = [
      { nodeId: 'supervisor', typeId: 'core.orchestrator.supervisor', config: { mockDispatchPlan: plan } },
      { nodeId: 'dispatch', typeId: 'core.dispatch', config: { outputMapping: { parentResult: 'childOutcome' } } },
    ];
    expect((await seam('workflows', { workflowId, nodes })).status).toBe(201);
    const run = await api().ended(await api().run(workflowId));
    expect(run.variables ?? {}).not.toHaveProperty('parentResult');
    expect((await seam('workflows', { nodes })).status).toBe(400);
    expect((await seam('workflows', { workflowId, nodes: [{ nodeId: 'a', typeId: 'nobody.has.this' }] })).status).toBe(
      422,
    );
  });

  it.each([
    ['agents.dispatchMapping', 'core.dispatch', { nextWorkerIds: ['child-a'], inputMapping: { a: 'b' } }],
    ['subWorkflow.inputMapping', 'core.subWorkflow', { childWorkflowId: 'some-child', inputMapping: { a: 'b' } }],
  ])(
    'switch %s off: a mapping is refused, for this tenant and until it is switched on again',
    async (name, typeId, config) => {
      const overlayOf = async (body: object): Promise<Body> =>
        (await seam('test/capability-toggle', body)).body.overlay;
      expect(await overlayOf({ name: '__probe__', value: null })).toEqual({});
      expect(await overlayOf({ name, value: false })).toEqual({ [name]: false });
      const sketch = { workflowId: unique('off'), nodes: [{ nodeId: 'n', typeId, config }] };
      const refused = await seam('workflows', sketch);
      expectRefusal(refused, 400, 'validation_error');
      expect(refused.body.details.requiredCapability).toBe(name);
      const mapping = (await api().get('/v1/workflows/conformance-subworkflow-input-mapping')).body;
      const again = await api().post(WORKFLOWS, { ...mapping, id: unique('off') });
      expect(again.status).toBe(typeId === 'core.subWorkflow' ? 400 : 201);
      expect(
        (
          await host()
            .as('other')
            .post(WORKFLOWS, { ...mapping, id: unique('off') })
        ).status,
      ).toBe(201);
      expect(await overlayOf({ reset: true })).toEqual({});
      expect((await api().post(WORKFLOWS, { ...mapping, id: unique('on') })).status).toBe(201);
      expectRefusal(await seam('test/capability-toggle', { name: 'webhooks', value: false }), 400, 'validation_error');
    },
  );

  it('change a variable of a parent while its child waits, which the child does not see', async () => {
    const parent = await api().run('conformance-subworkflow-mid-run-mutation');
    const { childRuns } = await api().until(parent, ({ status }) => status === 'waiting-approval');
    const child = childRuns[0].runId;
    const changed = await seam(`test/runs/${parent}/variables`, { variables: { currentPrdId: 'mutated-id' } });
    expect([changed.status, changed.body.changed]).toEqual([200, ['currentPrdId']]);
    await api().post(`/v1/runs/${child}/interrupts/child-gate`, { resumeValue: { action: 'accept' } });
    expect((await api().ended(child)).variables.receivedPrdId).toBe('seeded-id');
    expect((await api().ended(parent)).variables.currentPrdId).toBe('mutated-id');
    expectRefusal(await seam(`test/runs/${parent}/variables`, { variables: {} }), 409, 'run_terminal');
    expectRefusal(await seam(`test/runs/${parent}/variables`, { variables: {} }, host().as('other')), 404, 'not_found');
  });

  it('speak MCP, as the endpoint of the host does', async () => {
    const name = unique('tool').replaceAll('-', '_');
    const inputSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
    const nodes = [{ nodeId: 'expose', typeId: 'core.openwop.mcp.expose-tool', config: { name, inputSchema } }];
    expect((await seam('workflows', { workflowId: unique('mcp'), nodes })).status).toBe(201);
    const call = (args: object): Promise<Answer> =>
      seam('mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } });
    const listed = await seam('mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' });
    expect(listed.body.result.tools.map((tool: Body) => tool.name)).toContain(name);
    const refused = await call({ wrongField: 'no' });
    expect([refused.status, refused.body.error.code]).toEqual([200, -32602]);
    expect((await call({ text: 'hello' })).body.result.isError).toBe(false);
    expect((await host().anonymous.post(`${SAMPLE}/mcp`, {})).status).toBe(401);
  });

  it('have no surface that is not exposed, whatever is to be done there', async () => {
    const at = (surface: string, op: string): Promise<Answer> =>
      seam('test/surface', { tenantId: 'a', surface, op, args: { key: 'k' } }, host().as('owner'));
    for (const surface of ['sql', 'queueBus', 'blob']) {
      expectRefusal(await at(surface, 'execute'), 404, 'not_found');
      expectRefusal(await at(surface, 'get'), 404, 'not_found');
    }
    expectRefusal(await at('kv', 'execute'), 400, 'validation_error');
    expectRefusal(await at('webhooks', 'get'), 400, 'validation_error');
    expect((await at('kv', 'get')).body).toMatchObject({ found: false });
  });

  it('expire a run at an address with a key, without a header, and not without a key', async () => {
    const expire = (runId: string, key: string): Promise<Answer> =>
      host().anonymous.post(`${SAMPLE}/test/force-expire/${runId}${key}`);
    const runId = await api().run('conformance-noop');
    await api().ended(runId);
    expectRefusal(await expire(runId, ''), 401, 'unauthenticated');
    expectRefusal(await expire(runId, '/nobody-knows-this'), 404, 'not_found');
    expectRefusal(await expire(runId, `/${KEYS.nothing.key}`), 403, 'forbidden');
    expectRefusal(await expire(runId, `/${KEYS.other.key}`), 404, 'not_found');
    expect((await expire(runId, `/${KEYS.owner.key}`)).status).toBe(204);
    expect((await api().get(`/v1/runs/${runId}`)).status).toBe(410);
  });
});
