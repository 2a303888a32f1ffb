import { expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { edge, node, register, unique, workflow } from '../support/definitions.ts';
import { resolve, waits } from '../support/interrupts.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onOneStore } from '../support/stores.ts';

/** execution.md 6.4 levels 3 to 6 and learning.md 5.17: turns, verdicts, and what is claimed of them. */

type Body = Answer['body'];

const DONE = { kind: 'terminate' };
const WORK = { kind: 'next-worker', nextWorkerIds: ['conformance-noop'] };
const schemas = loadSchemas();

function led(supervisor: object, dispatch: object = {}) {
  const nodes = [
    node('supervisor', 'core.orchestrator.supervisor', { config: { ...supervisor } }),
    node('dispatch', 'core.dispatch', { config: { ...dispatch } }),
  ];
  return workflow(nodes, [edge('supervisor', 'dispatch')]);
}

onOneStore('agent loops', (host) => {
  const api = (): Api => host().as('editor');
  const payloads = (events: readonly Body[], type: string): Body[] =>
    events.filter((event) => event.type === type).map(({ payload }) => payload);
  const verdicts = (events: readonly Body[]): string[] =>
    payloads(events, 'agent.verified').map(({ verdict }) => verdict);
  const verifier = async (expression: string): Promise<string> => {
    const id = unique('ver');
    const body = { id, kind: 'criteria', criteria: [{ key: 'good', expression }] };
    expect((await api().post('/v1/host/capstan/verifiers', body)).status).toBe(201);
    return id;
  };
  const finish = async (definition: ReturnType<typeof led>, options: object = {}) => {
    const snapshot = await api().ended(await api().run(await register(api(), definition), options));
    return { snapshot, events: await api().events(snapshot.runId) };
  };
  async function expectReplay(runId: string): Promise<void> {
    const { body } = await api().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq: 0 });
    await api().ended(body.runId);
    const shape = async (id: string) =>
      (await api().events(id)).slice(1).map(({ type, payload }: Body) => [type, payload]);
    expect(await shape(body.runId)).toEqual(await shape(runId));
  }

  it('are advertised with everything up to their level', async () => {
    const { body } = await api().get('/.well-known/openwop');
    expect(body.multiAgent.executionModel).toMatchObject({
      supported: true,
      version: 6,
      crossHostCausation: { supported: true, hostId: expect.any(String), ancestryEndpointSupported: true },
      replayDeterminism: { supported: true, llmCacheKeyRecipe: 'spec-rfc-0041', refusalDivergenceEmission: true },
      statefulResume: true,
      verifier: { supported: true, gating: true },
    });
    expect(body.agents.goals.judge).toBe('verifier');
    expect(schemas.discovery(body)).toEqual([]);
  });

  it('go on in the turn in which a person was asked', async () => {
    const plan = [WORK, { ...WORK, confidence: 0.4 }, { kind: 'ask-user', prompt: 'Enough?' }, DONE];
    const runId = await api().run(await register(api(), led({ mockDispatchPlan: plan })));
    await waits(api(), runId);
    await resolve(api(), runId, 'dispatch', { action: 'accept' });
    await waits(api(), runId);
    await resolve(api(), runId, 'dispatch', { answers: { answer: 'Yes' } });
    expect((await api().ended(runId)).status).toBe('completed');
    const decided = payloads(await api().events(runId), 'runOrchestrator.decided');
    expect(decided.map(({ iteration }) => iteration)).toEqual([1, 2, 3, 4]);
    await expectReplay(runId);
  });

  it('send a worker again whose result is to be revised, and fail with one that never passes', async () => {
    const never = await verifier('run.status == "failed"');
    const plan = { verifier: never, mockDispatchPlan: [WORK, DONE] };
    const { snapshot, events } = await finish(led(plan, { revisions: 2 }));
    expect([snapshot.status, snapshot.error.code]).toEqual(['failed', 'verification_failed']);
    expect(verdicts(events)).toEqual(['revise', 'revise', 'fail']);
    const sent = payloads(events, 'node.dispatched').map(({ childRunId }) => childRunId);
    expect(payloads(events, 'agent.verified').map(({ target }) => target)).toEqual(sent);
    expect(payloads(events, 'runOrchestrator.decided')).toHaveLength(2);
    await expectReplay(snapshot.runId);
  });

  it('count revisions as turns', async () => {
    const plan = { verifier: await verifier('run.status == "failed"'), mockDispatchPlan: [WORK, WORK, WORK, DONE] };
    const { snapshot, events } = await finish(led(plan, { revisions: 2 }), { configurable: { maxLoopIterations: 2 } });
    expect([snapshot.status, snapshot.error.code]).toEqual(['failed', 'loop_limit_exceeded']);
    expect(verdicts(events)).toEqual(['revise', 'fail']);
    expect(payloads(events, 'cap.breached')).toMatchObject([{ kind: 'loop-iterations', limit: 2, observed: 3 }]);
  });

  it('refuse revisions where workers run at the same time', async () => {
    const definition = led({ mockDispatchPlan: [DONE] }, { revisions: 1, fanOutPolicy: 'parallel' });
    const { status, text } = await api().post('/v1/host/capstan/workflows', definition);
    expect([status, text.includes('revisions')]).toEqual([422, true]);
  });

  it('show their verdicts to a suite', async () => {
    const verify = async (simulateVerdict: string): Promise<Body> => {
      const { status, body, text } = await api().post('/v1/host/sample/agents/verify-run', { simulateVerdict });
      expect(status, text).toBe(200);
      const verdict = body.events.find(({ type }: Body) => type === 'agent.verified').verdict;
      return [verdict, body.status, body.committed];
    };
    expect(await verify('fail')).toEqual(['fail', 'failed', false]);
    expect(await verify('pass')).toEqual(['pass', 'completed', true]);
    expect(await verify('revise')).toEqual(['revise', 'failed', false]);
    expect(await verify('pass')).toEqual(['pass', 'completed', true]);
  });

  it('show their turns to a suite', async () => {
    const loop = async (body: object): Promise<Body> => (await api().post('/v1/host/sample/agentloop/run', body)).body;
    const plain = await loop({ turns: 3 });
    expect(plain.decisions.map(({ iteration }: Body) => iteration)).toEqual([1, 2, 3]);
    expect(plain.resumedIteration).toBeUndefined();
    const resumed = await loop({ turns: 4, suspendAtTurn: 2, resume: true });
    expect(resumed).toMatchObject({ status: 'completed', resumedIteration: 2 });
    expect(resumed.decisions.map(({ iteration }: Body) => iteration)).toEqual([1, 2, 3, 4]);
    expect((await loop({ turns: 4, suspendAtTurn: 2 })).status).toBe('waiting-approval');
  });
});
