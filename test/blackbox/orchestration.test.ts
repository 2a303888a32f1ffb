import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { WorkflowNode } from '../../src/protocol/running/workflows.ts';
import type { Answer, Api } from '../support/api.ts';
import { edge, node, register, workflow } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { approval, resolve, waitingRun, waits } from '../support/interrupts.ts';
import { ModelServer } from '../support/model-server.ts';
import { loadSchemas } from '../support/schemas.ts';
import { storesFor } from '../support/stores.ts';

/** execution.md 4.4 and 6.4: runs that a supervisor leads. */

type Body = Answer['body'];

const schemas = loadSchemas();
const payloads = (events: readonly Body[], type: string): Body[] =>
  events.filter((event) => event.type === type).map(({ payload }) => payload);
const kinds = (events: readonly Body[]): string[] =>
  payloads(events, 'runOrchestrator.decided').map(({ decision }: Body) => decision.kind);

/** A supervisor with a plan, and a dispatch that does as it says. */
function led(plan: object, dispatch: object = {}, more: object = {}) {
  const nodes = [
    node('supervisor', 'core.orchestrator.supervisor', { config: { ...plan } }),
    node('dispatch', 'core.dispatch', { config: { ...dispatch } }),
  ];
  return workflow(nodes, [edge('supervisor', 'dispatch'), edge('dispatch', 'supervisor')], more);
}
const sends = (...nextWorkerIds: string[]) => ({ kind: 'next-worker', nextWorkerIds });
const DONE = { kind: 'terminate' };

describe.each(storesFor('runs with a supervisor'))('runs with a supervisor, on %s', (kind) => {
  let host: TestHost;
  let server: ModelServer;
  beforeAll(async () => {
    server = await ModelServer.open();
    const models = [
      {
        provider: 'acme',
        kind: 'openai-compatible' as const,
        baseUrl: server.url,
        models: ['lead'],
        prices: {},
        timeoutMs: 10_000,
      },
    ];
    host = await startTestHost(kind, inject('postgresUrl'), { models });
  });
  afterAll(async () => {
    await host?.stop();
    server.close();
  });

  const api = (): Api => host.as('editor');
  const finish = async (workflowId: string, options: object = {}) => {
    const snapshot = await api().ended(await api().run(workflowId, options));
    return { snapshot, events: await api().events(snapshot.runId) };
  };
  const childrenOf = (events: readonly Body[]): Promise<Body[]> =>
    Promise.all(
      payloads(events, 'node.dispatched').map(
        async ({ childRunId }: Body) => (await api().get(`/v1/runs/${childRunId}`)).body,
      ),
    );

  it('are advertised as far as they go', async () => {
    const { body } = await api().get('/.well-known/openwop');
    expect(body.agents).toMatchObject({ orchestrator: true, dispatch: true, dispatchMapping: true });
    expect(body.dispatch).toMatchObject({
      supported: true,
      models: ['child-run'],
      fanOutSupported: true,
      maxFanOut: 16,
    });
    expect(body.multiAgent.executionModel).toMatchObject({ supported: true, version: 6 });
    expect(schemas.discovery(body)).toEqual([]);
  });

  it('send workers until the supervisor has had enough', async () => {
    const { snapshot, events } = await finish('conformance-dispatch-loop');
    expect([snapshot.status, kinds(events)]).toEqual(['completed', ['next-worker', 'terminate']]);
    for (const event of events) expect(schemas.payload(event.type)?.(event.payload) ?? []).toEqual([]);
    const decisions = events.filter(({ type }) => type === 'runOrchestrator.decided');
    expect(decisions.map(({ nodeId }) => nodeId)).toEqual(['orchestrator', 'orchestrator']);
    expect(snapshot.runOrchestrator).toEqual({ agentId: 'host:supervisor:orchestrator' });
    expect(snapshot.nodeStates.dispatch.outputs.childStatus).toBe('completed');
    for (const nodeId of ['orchestrator', 'dispatch']) expect(snapshot.nodeStates[nodeId].attempt).toBe(0);

    const pinned = await finish('conformance-orchestrator-dispatch');
    expect(pinned.snapshot.runOrchestrator.agentId).toBe('core.conformance.supervisor');
    const ended = await finish('conformance-orchestrator-terminate');
    expect([ended.snapshot.status, kinds(ended.events)]).toEqual(['completed', ['terminate']]);
  });

  it('hand variables to workers and take some back', async () => {
    const told = await finish('conformance-dispatch-input-mapping');
    expect((await childrenOf(told.events)).map(({ inputs }) => inputs)).toEqual([{ childGreeting: 'Alice' }]);
    const silent = await finish('conformance-dispatch-input-mapping-no-default');
    expect((await childrenOf(silent.events))[0].inputs).toEqual({});
    const learnt = await finish('conformance-dispatch-output-mapping');
    expect(learnt.snapshot.variables.parentResult).toBe('done');
    const handed = await finish('conformance-dispatch-cross-worker-handoff');
    expect((await childrenOf(handed.events)).map(({ inputs }) => inputs)).toEqual([{}, { input: 'hello' }]);
    expect(handed.snapshot.variables.sharedVar).toBe('hello');
    const overridden = await finish('conformance-dispatch-per-worker-override');
    expect((await childrenOf(overridden.events)).map(({ inputs }) => inputs)).toEqual([
      { input: 'default-x-value' },
      { input: 'shared-value' },
    ]);
  });

  it('learn nothing from workers that fail', async () => {
    const worker = 'conformance-dispatch-deterministic-fail-child';
    const definition = led(
      { mockDispatchPlan: [sends(worker), DONE] },
      { outputMapping: { result: 'childOutcome' } },
      { variables: [{ name: 'result', type: 'string', defaultValue: 'as it was' }] },
    );
    const { snapshot } = await finish(await register(api(), definition));
    expect([snapshot.status, snapshot.variables.result]).toEqual(['completed', 'as it was']);
    expect(snapshot.nodeStates.dispatch.outputs.childStatus).toBe('failed');
  });

  it('wait for a person when the supervisor is not sure, and have decided nothing until then', async () => {
    const waiting = await waitingRun(api(), 'conformance-orchestrator-low-confidence');
    expect(waiting.status).toBe('waiting-approval');
    const before = await api().events(waiting.runId);
    expect(kinds(before)).toEqual([]);
    expect(payloads(before, 'node.suspended')).toMatchObject([
      { reason: 'low-confidence', agentId: 'core.conformance.low-conf-supervisor', threshold: 0.7, observed: 0.5 },
    ]);
    await resolve(api(), waiting.runId, 'supervisor', { action: 'accept' });
    await api().ended(waiting.runId);
    expect(kinds(await api().events(waiting.runId))).toEqual(['next-worker', 'terminate']);
  });

  it('ask people, wait for workers that do, and are replayed to the letter', async () => {
    const worker = await register(api(), workflow([approval('sign')]));
    const question = { kind: 'ask-user', prompt: 'Shall we?' };
    const definition = led({ mockDispatchPlan: [question, sends(worker), question, sends('conformance-noop'), DONE] });
    const runId = await api().run(await register(api(), definition));
    const answer = async (): Promise<void> => {
      expect((await waits(api(), runId)).status).toBe('waiting-input');
      await resolve(api(), runId, 'dispatch', { answers: { answer: 'yes' } });
    };
    await answer();
    expect((await api().until(runId, ({ status }) => status === 'waiting-approval')).status).toBe('waiting-approval');
    const [child] = await childrenOf(await api().events(runId));
    await resolve(api(), child.runId, 'sign', { action: 'accept' });
    await api().until(runId, ({ status }) => status === 'waiting-input');
    await answer();
    expect((await api().ended(runId)).status).toBe('completed');
    const events = await api().events(runId);
    expect(kinds(events)).toEqual(['ask-user', 'next-worker', 'ask-user', 'next-worker', 'terminate']);
    expect(payloads(events, 'clarification.requested')).toHaveLength(2);
    expect(payloads(events, 'node.dispatched')).toHaveLength(2);

    const { body } = await api().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq: 0 });
    await api().ended(body.runId);
    const told = async (id: string) => (await api().events(id)).map(({ type, payload }) => [type, payload]);
    expect((await told(body.runId)).slice(1)).toEqual((await told(runId)).slice(1));
  });

  it('come to an end in so many turns', async () => {
    const endless = { mockDispatchPlan: Array.from({ length: 9 }, () => sends('conformance-noop')) };
    const { snapshot, events } = await finish(await register(api(), led(endless, { iterationCap: 3 })));
    expect(snapshot.error.code).toBe('loop_limit_exceeded');
    expect(payloads(events, 'cap.breached')).toMatchObject([{ kind: 'loop-iterations', limit: 3, observed: 4 }]);
    expect(kinds(events)).toHaveLength(3);
  });

  it('are refused, or fail, where they make no sense', async () => {
    const refused = async (nodes: WorkflowNode[], more: object = {}): Promise<Body> =>
      (await api().post('/v1/host/capstan/workflows', workflow(nodes, [], more))).body;
    for (const config of [
      { fanOutPolicy: 'later' },
      { joinPolicy: {} },
      { maxConcurrency: 2 },
      { fanOutPolicy: 'parallel', joinPolicy: { mode: 'quorum' } },
      { fanOutPolicy: 'parallel', joinPolicy: { mode: 'some' } },
      { askUserRouting: 'conversation' },
      { surprise: 1 },
    ]) {
      expect((await refused([node('d', 'core.dispatch', { config })])).error).toBe('validation_error');
    }
    const alone = await finish(await register(api(), workflow([node('d', 'core.dispatch')])));
    expect(alone.snapshot.error.code).toBe('no_pending_decision');
    const two = led({ mockDispatchPlan: [sends('conformance-noop', 'conformance-noop')] }, { fanOutPolicy: 'reject' });
    expect((await finish(await register(api(), two))).snapshot.error.code).toBe('fan_out_unsupported');
    const unknown = led({ mockDispatchPlan: [sends('there-is-none')] });
    expect((await finish(await register(api(), unknown))).snapshot.error.code).toBe('unknown_child_workflow');
  });

  it('are led by a model that chooses among the workflows it was given', async () => {
    const turns = [sends('conformance-dispatch-output-mapping-child'), { kind: 'terminate', reason: 'All done.' }];
    server.on('lead', ({ body }, speech) => {
      const { turn } = JSON.parse(body.messages.at(-1).content.split('\n')[0]);
      speech.text(JSON.stringify({ decision: turns[turn - 1], confidence: 0.9 })).end();
    });
    const definition = led(
      {
        workers: ['conformance-dispatch-output-mapping-child'],
        systemPrompt: 'You lead.',
        provider: 'acme',
        model: 'lead',
      },
      { outputMapping: { outcome: 'childOutcome' } },
    );
    const { snapshot, events } = await finish(await register(api(), definition));
    expect([snapshot.status, snapshot.variables.outcome], JSON.stringify(snapshot.error)).toEqual([
      'completed',
      'done',
    ]);
    expect(kinds(events)).toEqual(['next-worker', 'terminate']);
    expect(payloads(events, 'agent.invocation.started').map(({ invocationId }: Body) => invocationId)).toHaveLength(2);
    expect(server.asked('lead')).toHaveLength(2);
    expect(server.asked('lead')[1]!.body.messages.at(-1).content).toContain('"status":"completed"');
  });
});
