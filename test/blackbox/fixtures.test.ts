import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { WORKFLOWS } from '../support/definitions.ts';
import { publicFixtures } from '../support/public-fixtures.ts';
import { onOneStore } from '../support/stores.ts';

/** execution.md 4.2: the fixtures that suites start by name do what the scenarios about them expect. */

type Body = Answer['body'];

/** Its config has what looks like a secret, which no tenant may register. */
const CANARY = 'openwop-smoke-cost-emit';

onOneStore('the fixtures', (host) => {
  const api = (): Api => host().as('editor');
  const perform = async (workflowId: string, rest: object = {}): Promise<{ run: Body; events: Body[] }> => {
    const runId = await api().run(workflowId, rest);
    return { run: await api().ended(runId), events: await api().events(runId) };
  };
  const typesOf = (events: Body[]): string[] => events.map(({ type }) => type);

  it('can be registered by a tenant word for word, the public ones where they are at hand', async () => {
    const ids: string[] = (await api().get('/.well-known/openwop')).body.fixtures;
    const own = await Promise.all(ids.map(async (id) => (await api().get(`/v1/workflows/${id}`)).body));
    const published = publicFixtures().filter(({ id }) => ids.includes(String(id)));
    for (const definition of published.length > 0 ? published : own) {
      const { status, text } = await host().as('other').post(WORKFLOWS, definition);
      expect(status, text).toBe(definition.id === CANARY ? 422 : 201);
    }
  });

  it('conformance-message-reducer: a message that is said twice is heard once', async () => {
    const { run, events } = await perform('conformance-message-reducer');
    expect(run.status).toBe('completed');
    expect(typesOf(events).filter((type) => type === 'channel.written')).toHaveLength(2);
    expect(run.channels.messages.map(({ messageId }: Body) => messageId)).toEqual(['conformance-message-1']);
  });

  it('conformance-append-ordering: entries are in the order of their events', async () => {
    const { run, events } = await perform('conformance-append-ordering');
    const writes = events.filter(({ type }) => type === 'channel.written').map(({ payload }) => payload.value);
    expect(writes).toEqual(['first', 'second', 'third']);
    expect(run.channels.events).toEqual(writes);
  });

  describe('memory', () => {
    const variablesOf = async (name: string): Promise<Body> => {
      const { run, events } = await perform(`conformance-agent-memory-${name}`);
      expect(run.status).toBe('completed');
      expect(typesOf(events)).not.toContain('agent.decided');
      return { ...run.variables, runId: run.runId };
    };

    it('is read back', async () => {
      const { memoryReadback } = await variablesOf('roundtrip');
      expect(memoryReadback).toMatchObject({ id: expect.any(String), content: 'remembered' });
    });

    it('has a marker in place of a secret', async () => {
      const { memoryReadback, runId } = await variablesOf('redaction');
      expect(memoryReadback.content).toContain('[REDACTED:conformance-test-secret]');
      expect(memoryReadback.content).not.toContain(runId);
    });

    it('forgets what has expired', async () => {
      const { memoryList, freshId } = await variablesOf('ttl');
      expect(memoryList.map(({ id }: Body) => id)).toEqual([freshId]);
    });

    it('has nothing of another tenant', async () => {
      const { ownerProbe, ownerEntryId, crossTenantProbe } = await variablesOf('cross-tenant');
      expect(ownerProbe.map(({ id }: Body) => id)).toContain(ownerEntryId);
      expect(crossTenantProbe).toEqual([]);
    });

    it('is not touched again by a replay, which tells what the source told', async () => {
      const { run } = await perform('conformance-agent-memory-roundtrip');
      const forked = await api().post(`/v1/runs/${run.runId}:fork`, { mode: 'replay', fromSeq: 0 });
      const replayed = await api().ended(forked.body.runId);
      expect(replayed).toMatchObject({ status: 'completed', variables: run.variables });
      expect(typesOf(await api().events(forked.body.runId))).not.toContain('replay.diverged');
    });
  });

  it('conformance-phase4-nondet-tool: runs differ, and a replay does not', async () => {
    const answerOf = ({ nodeStates }: Body): unknown => nodeStates['nondet-tool'].outputs.value;
    const [one, other] = [
      await perform('conformance-phase4-nondet-tool'),
      await perform('conformance-phase4-nondet-tool'),
    ];
    expect(answerOf(one.run)).toEqual(expect.any(String));
    expect(answerOf(other.run)).not.toBe(answerOf(one.run));
    const forked = await api().post(`/v1/runs/${one.run.runId}:fork`, { mode: 'replay', fromSeq: 0 });
    const replayed = await api().ended(forked.body.runId);
    expect([replayed.status, answerOf(replayed)]).toEqual(['completed', answerOf(one.run)]);
    const told = (events: Body[]): Body[] =>
      events.slice(1).map(({ type, nodeId, payload }) => ({ type, nodeId, payload }));
    expect(told(await api().events(forked.body.runId))).toEqual(told(one.events));
  });

  it('conformance-dispatch-loop: turns are counted against the limit of the run', async () => {
    expect((await perform('conformance-dispatch-loop')).run.status).toBe('completed');
    const { run, events } = await perform('conformance-dispatch-loop', { configurable: { maxLoopIterations: 1 } });
    expect(run).toMatchObject({ status: 'failed', error: { code: 'loop_limit_exceeded' } });
    const breach = events.find(({ type }) => type === 'cap.breached');
    expect(breach.payload).toMatchObject({ kind: 'loop-iterations', limit: 1, observed: 2 });
  });

  it('conformance-model-capability-insufficient: the reason precedes the failure, and the node does not start', async () => {
    const { run, events } = await perform('conformance-model-capability-insufficient');
    expect(run).toMatchObject({ status: 'failed', error: { code: 'capability_not_provided' } });
    expect(typesOf(events)).toEqual(['run.started', 'model.capability.insufficient', 'node.failed', 'run.failed']);
    expect(events[1].payload).toEqual({
      nodeId: 'insufficient-node',
      provider: expect.any(String),
      model: expect.any(String),
      missingCapabilities: ['nonexistent-capability-9b3f'],
      fallbackAttempted: false,
    });
    const forked = await api().post(`/v1/runs/${run.runId}:fork`, { mode: 'replay', fromSeq: 0 });
    await api().ended(forked.body.runId);
    expect(typesOf(await api().events(forked.body.runId)).slice(1)).toEqual(typesOf(events).slice(1));
  });

  it.each([
    ['a task that fits', { text: 'Invoice 42', extractionFields: ['total'] }, undefined],
    ['a task that does not', { text: 'Invoice 42' }, 'handoff_task_schema_violation'],
    [
      'a result that does not',
      { scenario: 'mock-return-violation', text: 'x', extractionFields: ['a'] },
      'handoff_return_schema_violation',
    ],
  ])('conformance-agent-pack-handoff-schema-validation: %s', async (_, inputs, code) => {
    const { run, events } = await perform('conformance-agent-pack-handoff-schema-validation', { inputs });
    expect(run.status).toBe(code ? 'failed' : 'completed');
    const failures = events.filter(({ type }) => type === 'node.failed').map(({ payload }) => payload.error.code);
    expect(failures).toEqual(code ? [code] : []);
  });

  it('conformance-approval-reject-routed: a no takes the way for failures, and only that', async () => {
    const runId = await api().run('conformance-approval-reject-routed');
    await api().until(runId, ({ status }) => status === 'waiting-approval');
    await api().post(`/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: 'reject' } });
    const { status } = await api().ended(runId);
    const events = await api().events(runId);
    const failed = events.find(({ type }) => type === 'node.failed');
    expect(failed).toMatchObject({
      nodeId: 'gate',
      payload: { error: { code: 'approval_rejected', retryable: false } },
    });
    const completed = events.filter(({ type }) => type === 'node.completed').map(({ nodeId }) => nodeId);
    expect([status, completed]).toEqual(['completed', ['on-reject']]);
    expect(events.filter(({ type, nodeId }) => type === 'node.started' && nodeId === 'on-accept')).toEqual([]);
  });

  it('conformance-approval-timeout-approve: nobody is approved by silence', async () => {
    const { run } = await perform('conformance-approval-timeout-approve');
    expect(run.status).toBe('failed');
    expect(run.error.code).toMatch(/^approval_(rejected|timeout)$/);
  });

  it('openwop-smoke-byok-roundtrip: a secret is resolved, and only its digest is told', async () => {
    const { run, events } = await perform('openwop-smoke-byok-roundtrip');
    expect(run.status).toBe('completed');
    const { secretSha256, secretLength } = run.variables['resolve-secret'];
    expect(secretSha256).toMatch(/^[0-9a-f]{64}$/);
    expect(secretLength).toBeGreaterThan(0);
    const words = JSON.stringify([run, events]).match(/[\w-]{8,}/g) ?? [];
    const digests = words.map((word) => createHash('sha256').update(word).digest('hex'));
    expect(digests).not.toContain(secretSha256);
    expect(events.filter(({ type, nodeId }) => type === 'node.completed' && nodeId === 'resolve-secret')).toHaveLength(
      1,
    );
  });

  it('openwop-smoke-cost-emit: costs are told, and nothing that is not one', async () => {
    const { run, events } = await perform(CANARY);
    expect(run.status).toBe('completed');
    const usage = events.filter(({ type }) => type === 'provider.usage').map(({ payload }) => payload);
    expect(usage).toEqual([
      {
        provider: 'anthropic',
        model: 'conformance',
        inputTokens: 100,
        outputTokens: 50,
        totalTokens: 150,
        costEstimateUsd: 0.00123,
        currency: 'USD',
      },
    ]);
    expect(JSON.stringify([run, events])).not.toMatch(/CANARY|must-be-dropped/);
  });
});
