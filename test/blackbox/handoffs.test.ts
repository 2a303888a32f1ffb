import { expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { edge, node, register, unique, workflow } from '../support/definitions.ts';
import { approval, resolve, waits } from '../support/interrupts.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onOneStore } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** execution.md 4.4 and 6.4, learning.md 5.17: handoffs to workers, their joins and verdicts. */

type Body = Answer['body'];

const CHAIN = 'core.workflowChain.event';
const DONE = { kind: 'terminate' };
const schemas = loadSchemas();
const sends = (...nextWorkerIds: string[]) => ({ kind: 'next-worker', nextWorkerIds });
const text = (name: string, defaultValue: string) => ({ name, type: 'string' as const, defaultValue });

function led(supervisor: object, dispatch: object = {}, more: object = {}) {
  const nodes = [
    node('supervisor', 'core.orchestrator.supervisor', { config: { ...supervisor } }),
    node('dispatch', 'core.dispatch', { config: { ...dispatch } }),
  ];
  return workflow(nodes, [edge('supervisor', 'dispatch'), edge('dispatch', 'supervisor')], more);
}

onOneStore('handoffs', (host) => {
  const api = (): Api => host().as('editor');
  const finish = async (workflowId: string) => {
    const snapshot = await api().ended(await api().run(workflowId));
    return { snapshot, events: await api().events(snapshot.runId) };
  };
  const phases = (events: readonly Body[]): string[] =>
    events.filter(({ type }) => type === CHAIN).map(({ payload }) => payload.phase);
  const worker = (): Promise<string> =>
    register(api(), workflow([approval('sign')], [], { variables: [text('found', unique('found'))] }));
  const children = (events: readonly Body[]): Body[] =>
    events.filter(({ type }) => type === 'node.dispatched').map(({ payload }) => payload);

  async function expectReplay(runId: string): Promise<void> {
    const events = await api().events(runId);
    const { body } = await api().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq: 0 });
    await api().ended(body.runId);
    const shape = (log: readonly Body[]) => log.slice(1).map(({ type, payload }) => [type, payload]);
    expect(shape(await api().events(body.runId))).toEqual(shape(events));
  }

  /** The children of a run, once there are so many and all of them wait for a person. */
  async function waitingChildren(runId: string, count: number): Promise<Body[]> {
    const statusOf = async ({ childRunId }: Body) => (await api().get(`/v1/runs/${childRunId}`)).body.status;
    const found = async (): Promise<Body[]> => children(await api().events(runId));
    await until(
      async () => Promise.all((await found()).map(statusOf)),
      (states) => states.length === count && states.every((status) => status === 'waiting-approval'),
    );
    return found();
  }
  const sign = async (childRunId: string, action = 'accept'): Promise<void> => {
    await resolve(api(), childRunId, 'sign', { action });
    await api().ended(childRunId);
  };

  it('are recorded transition by transition, each because of the one before', async () => {
    const { snapshot, events } = await finish('conformance-multi-agent-handoff');
    expect([snapshot.status, snapshot.variables.parentResult]).toEqual(['completed', 'handoff-complete']);
    expect(phases(events)).toEqual(['dispatch.began', 'dispatch.succeeded', 'child.completed', 'output.harvested']);
    const chain = events.filter(({ type }) => type === CHAIN);
    const decided = events.filter(({ type }) => type === 'runOrchestrator.decided');
    expect(decided.map(({ payload }) => payload.iteration)).toEqual([1, 2]);
    const causes = [decided[0], ...chain].map(({ eventId }) => eventId);
    expect(chain.map(({ causationId }) => causationId)).toEqual(causes.slice(0, 4));
    expect(chain[3].payload.harvestedKeys).toEqual(['parentResult']);
    expect(chain[0].payload.childRunId).toBeUndefined();
    for (const event of events) expect(schemas.payload(event.type)?.(event.payload) ?? []).toEqual([]);
    await expectReplay(snapshot.runId);
  });

  it('that fail or cannot begin say so', async () => {
    const fails = 'conformance-dispatch-deterministic-fail-child';
    const mapped = { outputMapping: { result: 'childOutcome' } };
    const failed = await finish(await register(api(), led({ mockDispatchPlan: [sends(fails), DONE] }, mapped)));
    expect(phases(failed.events)).toEqual(['dispatch.began', 'dispatch.succeeded', 'child.failed']);
    const none = await finish(await register(api(), led({ mockDispatchPlan: [sends('there-is-none')] })));
    expect(none.snapshot.error.code).toBe('unknown_child_workflow');
    expect(phases(none.events)).toEqual(['dispatch.began', 'dispatch.failed']);
  });

  it.each([
    ['accept', 'completed', ['dispatch.began', 'dispatch.succeeded', 'child.completed']],
    ['reject', 'failed', []],
  ])('below the confidence floor wait for a person: %s', async (action, status, expected) => {
    const runId = await api().run('conformance-multi-agent-confidence-escalation');
    expect((await waits(api(), runId)).status).toBe('waiting-approval');
    const events = await api().events(runId);
    expect(phases(events)).toEqual([]);
    const [escalated, ...more] = events.filter(({ type }) => type === 'core.workflowChain.confidence-escalated');
    expect(more).toEqual([]);
    expect(escalated.payload).toMatchObject({ confidence: 0.3, floor: 0.5, escalationKind: 'escalate' });
    expect(schemas.payload(escalated.type)?.(escalated.payload) ?? []).toEqual([]);
    const cause = events.find(({ eventId }) => eventId === escalated.causationId);
    expect(cause.type).toBe('runOrchestrator.decided');
    await resolve(api(), runId, 'dispatch', { action });
    const ended = await api().ended(runId);
    expect([ended.status, ended.error?.code]).toEqual([status, action === 'reject' ? 'approval_rejected' : undefined]);
    expect(phases(await api().events(runId))).toEqual(expected);
    await expectReplay(runId);
  });

  it('to several workers at once are joined, and merged in the order of their ends', async () => {
    const workers = await Promise.all([worker(), worker(), worker()]);
    const dispatch = { fanOutPolicy: 'parallel', outputMapping: { last: 'found' } };
    const definition = led({ mockDispatchPlan: [sends(...workers), DONE] }, dispatch, {
      variables: [text('last', '')],
    });
    const runId = await api().run(await register(api(), definition));
    const [first, second, third] = await waitingChildren(runId, 3);
    for (const { childRunId } of [second, third, first]) await sign(childRunId);
    const ended = await api().ended(runId);
    const { joinOutcome, children: joined } = ended.nodeStates.dispatch.outputs;
    expect([ended.status, joinOutcome]).toEqual(['completed', 'satisfied']);
    expect(joined.map(({ workflowId, childStatus }: Body) => [workflowId, childStatus])).toEqual(
      workers.map((id) => [id, 'completed']),
    );
    const harvests = (await api().events(runId)).filter(({ payload }) => payload.phase === 'output.harvested');
    expect(harvests.map(({ payload }) => payload.childRunId)).toEqual(
      [second, third, first].map(({ childRunId }) => childRunId),
    );
    const child = (await api().get(`/v1/runs/${first.childRunId}`)).body;
    expect(ended.variables.last).toBe(child.variables.found);
    await expectReplay(runId);
    expect(children(await api().events(runId))).toHaveLength(3);
  });

  it('to several workers end with the first that completes, and the others are cancelled', async () => {
    const workers = await Promise.all([worker(), worker(), worker()]);
    const dispatch = { fanOutPolicy: 'parallel', joinPolicy: { mode: 'first' }, maxConcurrency: 2 };
    const runId = await api().run(
      await register(api(), led({ mockDispatchPlan: [sends(...workers), DONE] }, dispatch)),
    );
    const [first, second] = await waitingChildren(runId, 2);
    await sign(second.childRunId);
    const ended = await api().ended(runId);
    expect(ended.nodeStates.dispatch.outputs).toMatchObject({
      joinOutcome: 'satisfied',
      children: [{ childStatus: 'cancelled' }, { childStatus: 'completed' }],
    });
    expect((await api().ended(first.childRunId)).status).toBe('cancelled');
    expect(phases(await api().events(runId))).toContain('child.cancelled');
    await expectReplay(runId);
  });

  it('are taken over only where the verifier of the supervisor lets them pass', async () => {
    const verifier = unique('ver');
    const criteria = [{ key: 'long', expression: 'size(variables.childOutcome) > 100' }];
    const put = async (expression: string): Promise<void> => {
      const body = { id: verifier, kind: 'criteria', criteria: [{ ...criteria[0], expression }] };
      expect((await api().post('/v1/host/capstan/verifiers', body)).status).toBe(201);
    };
    const definition = led(
      { verifier, mockDispatchPlan: [sends('conformance-multi-agent-handoff-child'), DONE] },
      { outputMapping: { result: 'childOutcome' } },
      { variables: [text('result', 'as it was')] },
    );
    const workflowId = await register(api(), definition);
    await put(criteria[0]!.expression);
    const failed = await finish(workflowId);
    expect([failed.snapshot.status, failed.snapshot.error.code]).toEqual(['failed', 'verification_failed']);
    expect(failed.snapshot.variables.result).toBe('as it was');
    const verdict = failed.events.find(({ type }) => type === 'agent.verified');
    expect(verdict.payload).toEqual({
      agentId: `${verifier}@1`,
      target: children(failed.events)[0].childRunId,
      verdict: 'fail',
      criteria: ['long'],
    });
    expect(schemas.payload(verdict.type)?.(verdict.payload) ?? []).toEqual([]);
    await put('size(variables.childOutcome) > 1');
    const passed = await finish(workflowId);
    expect([passed.snapshot.status, passed.snapshot.variables.result]).toEqual(['completed', 'handoff-complete']);
    await expectReplay(passed.snapshot.runId);
  });
});
