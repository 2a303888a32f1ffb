import { describe, expect, it } from 'vitest';
import type { Answer } from '../support/api.ts';
import { edge, line, node, register, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import {
  approval,
  clarification,
  eventsOf,
  governanceGate,
  interrupt,
  resolve,
  waitingRun,
  waits,
} from '../support/interrupts.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onEachStore, onOneStore } from '../support/stores.ts';

/** durability.md 1: what nodes ask, who may answer, and what an answer does. */

const ORDER = { orderId: 'fixture-order-1', status: 'completed' };

onOneStore('kinds of interrupts', (host) => {
  const api = () => host().as('editor');
  const registered = (...nodes: Parameters<typeof workflow>[0]) =>
    register(api(), workflow(nodes, line(...nodes.map(({ id }) => id))));

  it('an approval waits at its gate, shows what to decide, and goes on when it is accepted', async () => {
    const snapshot = await waitingRun(api(), 'conformance-approval');
    const { runId } = snapshot;
    expect(snapshot).toMatchObject({ status: 'waiting-approval', currentNodeId: 'gate' });
    expect(snapshot.interrupt).toMatchObject({
      kind: 'approval',
      nodeId: 'gate',
      interruptId: expect.stringMatching(/^int-/),
      data: {
        artifactId: 'gate',
        artifactType: 'approval',
        title: 'Conformance approval',
        actions: ['accept', 'reject'],
      },
    });
    const answer = await resolve(api(), runId, 'gate', { action: 'accept' });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ runId, nodeId: 'gate', status: 'running' });
    expect((await api().ended(runId)).status).toBe('completed');
  });

  it('a clarification waits for input and takes answers as a map', async () => {
    const { runId, status, currentNodeId } = await waitingRun(api(), 'conformance-clarification');
    expect({ status, currentNodeId }).toEqual({ status: 'waiting-input', currentNodeId: 'ask' });
    expect((await resolve(api(), runId, 'ask', { answers: { q1: 'blue' } })).status).toBe(200);
    const { status: end, nodeStates } = await api().ended(runId);
    expect(end).toBe('completed');
    expect(nodeStates.ask.outputs).toEqual({ answers: { q1: 'blue' } });
  });

  it('a clarification takes answers as a list too, and keeps them as a map', async () => {
    const { runId } = await waitingRun(api(), 'conformance-clarification');
    expect((await resolve(api(), runId, 'ask', { answers: [{ id: 'q1', answer: ['blue'] }] })).status).toBe(200);
    await api().ended(runId);
    const [resolved] = await eventsOf(api(), runId, 'clarification.resolved');
    expect(resolved.payload).toEqual({ nodeId: 'ask', answers: { q1: ['blue'] }, answeredBy: 'editor-of-alpha' });
  });

  it('every question of a clarification is answered, and as its schema says', async () => {
    const workflowId = await registered(
      clarification('ask', [
        { id: 'colour', question: 'Which colour?', schema: { enum: ['red', 'blue'] } },
        { id: 'constructor', question: 'Who built it?' },
      ]),
    );
    const { runId } = await waitingRun(api(), workflowId);
    const before = await api().events(runId);
    for (const [answers, field] of [
      [undefined, 'resumeValue.answers'],
      ['red', 'resumeValue.answers'],
      [[{ answer: 'red' }], 'resumeValue.answers'],
      [{}, 'resumeValue.answers.colour'],
      [{ colour: 'green', constructor: 'ada' }, 'resumeValue.answers.colour'],
      [{ colour: 'red' }, 'resumeValue.answers.constructor'],
      [[{ id: 'colour', answer: 'red' }, { id: 'constructor' }], 'resumeValue.answers.constructor'],
    ] as const) {
      const answer = await resolve(api(), runId, 'ask', { answers });
      expectRefusal(answer, 400, 'validation_error');
      expect(answer.body.details.field).toBe(field);
    }
    expect(await api().events(runId)).toEqual(before);
    expect((await resolve(api(), runId, 'ask', { answers: { colour: 'red', constructor: 'ada' } })).status).toBe(200);
    expect((await api().ended(runId)).status).toBe('completed');
  });

  it('an external event is waited for, and is known by what it must say', async () => {
    const snapshot = await waitingRun(api(), 'conformance-interrupt-external-event');
    const { runId } = snapshot;
    expect(snapshot).toMatchObject({ status: 'waiting-external', currentNodeId: 'wait-for-external' });
    const { interruptToken, callbackUrl } = snapshot.interrupt;
    expect(callbackUrl).toBe(`${host().url}/v1/interrupts/${interruptToken}`);
    const path = `/v1/interrupts/${interruptToken}`;
    for (const event of [{ ...ORDER, orderId: 'another' }, { orderId: ORDER.orderId }, {}, [], 'completed', null]) {
      expectRefusal(await host().anonymous.post(path, { resumeValue: event }), 422, 'correlation_mismatch');
    }
    expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('waiting-external');
    const event = { ...ORDER, carrier: { name: 'by air' } };
    const answer = await host().anonymous.post(path, { resumeValue: event });
    expect(answer.body).toEqual({ runId, nodeId: 'wait-for-external', status: 'running' });
    const { status, nodeStates } = await api().ended(runId);
    expect(status).toBe('completed');
    expect(nodeStates['wait-for-external'].outputs).toEqual(event);
    const [resolved] = await eventsOf(api(), runId, 'interrupt.resolved');
    expect(resolved.payload).toMatchObject({ kind: 'external-event', resumeValue: event });
  });

  it('an external event is compared in depth, whatever the order of its members', async () => {
    const workflowId = await registered(
      interrupt('wait', 'external-event', {
        eventType: 'order.paid',
        correlation: { order: { id: 7, lines: ['a', 'b'] }, hasOwnProperty: true },
      }),
    );
    const { runId } = await waitingRun(api(), workflowId);
    const right = { order: { lines: ['a', 'b'], id: 7 }, hasOwnProperty: true };
    for (const event of [
      { ...right, order: { id: 7, lines: ['b', 'a'] } },
      { ...right, order: { id: '7', lines: ['a', 'b'] } },
      { order: right.order },
    ]) {
      expectRefusal(await resolve(api(), runId, 'wait', event), 422, 'correlation_mismatch');
    }
    expect((await resolve(api(), runId, 'wait', right)).status).toBe(200);
    expect((await api().ended(runId)).status).toBe('completed');
  });

  it.each([[null], [0], [false], ['text'], [[1, [2]]], [{ any: { thing: [] } }]])(
    'a custom interrupt takes %j',
    async (value) => {
      const workflowId = await registered(
        interrupt('wait', 'custom', { customKind: 'acme.signature', payload: { page: 3 } }),
      );
      const snapshot = await waitingRun(api(), workflowId);
      expect(snapshot.status).toBe('waiting-input');
      expect(snapshot.interrupt.data).toEqual({ customKind: 'acme.signature', payload: { page: 3 } });
      expect((await resolve(api(), snapshot.runId, 'wait', value)).status).toBe(200);
      await api().ended(snapshot.runId);
      const [resolved] = await eventsOf(api(), snapshot.runId, 'interrupt.resolved');
      expect(resolved.payload.resumeValue).toEqual(value);
    },
  );

  it('an answer fits the schema that the interrupt asks for', async () => {
    const resumeSchema = { type: 'object', required: ['page'], properties: { page: { type: 'integer' } } };
    const workflowId = await registered(interrupt('wait', 'custom', { customKind: 'acme.page' }, { resumeSchema }));
    const { runId } = await waitingRun(api(), workflowId);
    for (const value of [{ page: 'three' }, {}, null]) {
      const answer = await resolve(api(), runId, 'wait', value);
      expectRefusal(answer, 400, 'validation_error');
      expect(answer.body.details.field).toBe('resumeValue');
    }
    expect((await resolve(api(), runId, 'wait', { page: 3 })).status).toBe(200);
    expect((await api().ended(runId)).status).toBe('completed');
  });

  it('an agent that is not sure enough has its decision ratified', async () => {
    const data = { agentId: 'core.acme.planner', threshold: 0.7, observed: 0.41, decision: { go: 'left' } };
    const { runId, status } = await waitingRun(api(), await registered(interrupt('decide', 'low-confidence', data)));
    expect(status).toBe('waiting-approval');
    const [suspended] = await eventsOf(api(), runId, 'node.suspended');
    expect(suspended.payload).toMatchObject({
      reason: 'low-confidence',
      agentId: 'core.acme.planner',
      threshold: 0.7,
      observed: 0.41,
    });
    expect((await resolve(api(), runId, 'decide', { go: 'right' })).status).toBe(200);
    expect((await api().ended(runId)).nodeStates.decide.outputs).toEqual({ go: 'right' });
  });

  it.each([
    ['core.conversationGate', { lifecycle: 'open-exchange-close' }],
    ['core.interrupt', { kind: 'conversation.start', data: { conversationId: 'c' } }],
    ['core.interrupt', { kind: 'conversation.exchange', data: { conversationId: 'c', prompt: 'And then?' } }],
    ['core.interrupt', { kind: 'conversation.close', data: { conversationId: 'c' } }],
  ])('conversations are not served, and %s %j says so', async (typeId, config) => {
    const answer = await api().post(WORKFLOWS, workflow([node('talk', typeId, { config })]));
    expectRefusal(answer, 422, 'capability_required');
    expect(answer.body.details).toMatchObject({
      requiredCapability: 'conversationPrimitive',
      offendingTypeId: typeId,
      nodeId: 'talk',
    });
  });

  it('every kind that is advertised can be asked for, and no other', async () => {
    const { interrupts } = (await host().anonymous.get('/.well-known/openwop')).body;
    const data: Record<string, object> = {
      approval: { artifactId: 'a', artifactType: 'text', title: 'Approve', actions: ['accept'] },
      clarification: { questions: [{ id: 'q', question: 'Why?' }] },
      'external-event': { eventType: 'e', correlation: {} },
      custom: { customKind: 'c' },
      'low-confidence': { agentId: 'abc', threshold: 0.5, observed: 0.1 },
    };
    expect(interrupts.supportedKinds.toSorted()).toEqual(Object.keys(data).toSorted());
    const branches = Object.entries(data).map(([kind, of]) => interrupt(kind, kind, of as never));
    const { runId } = await waitingRun(api(), await register(api(), workflow(branches)));
    const { nodeStates } = await waits(api(), runId);
    expect(Object.values(nodeStates).map((state) => (state as { status: string }).status)).toEqual(
      branches.map(() => 'suspended'),
    );
  });
});

onEachStore('answering by run and node', (host) => {
  const api = () => host().as('editor');
  const at = (runId: string, nodeId = 'gate') => `/v1/runs/${runId}/interrupts/${nodeId}`;
  const ACCEPT = { resumeValue: { action: 'accept' } };

  /** A refusal changes nothing: the run waits as before, and can still be answered. */
  async function expectUnmoved(runId: string, attempt: () => Promise<void>): Promise<void> {
    const before = await api().events(runId);
    await attempt();
    expect(await api().events(runId)).toEqual(before);
    expect((await resolve(api(), runId, 'gate', { action: 'accept' })).status).toBe(200);
    expect((await api().ended(runId)).status).toBe('completed');
  }

  it('takes a credential', async () => {
    const { runId } = await waitingRun(api(), 'conformance-approval');
    await expectUnmoved(runId, async () => {
      expectRefusal(await host().anonymous.post(at(runId), ACCEPT), 401, 'unauthenticated');
    });
  });

  it('takes the scope approvals:respond', async () => {
    const { runId } = await waitingRun(api(), 'conformance-interrupt-auth-required');
    await expectUnmoved(runId, async () => {
      for (const who of ['viewer', 'nothing'] as const) {
        const answer = await host().as(who).post(at(runId), ACCEPT);
        expectRefusal(answer, 403, 'forbidden');
        expect(answer.body.details.scopeRequired).toBe('approvals:respond');
      }
    });
  });

  it('finds no run of another tenant, another workspace or a test key, and none that does not exist', async () => {
    const { runId } = await waitingRun(api(), 'conformance-approval');
    await expectUnmoved(runId, async () => {
      for (const who of ['other', 'workspace', 'test'] as const) {
        expectRefusal(await host().as(who).post(at(runId), ACCEPT), 404, 'not_found');
      }
      expectRefusal(await api().post(at('run-0000000000000000000000'), ACCEPT), 404, 'not_found');
    });
  });

  it('finds no interrupt at a node that is not there, does not ask or has not asked yet', async () => {
    const nodes = [approval('gate'), node('later'), approval('last')];
    const workflowId = await register(api(), workflow(nodes, line('gate', 'later', 'last')));
    const { runId } = await waitingRun(api(), workflowId);
    for (const nodeId of ['no-such-node', 'later', 'last', 'constructor', '__proto__']) {
      expectRefusal(await api().post(at(runId, nodeId), ACCEPT), 404, 'interrupt_not_found');
    }
    expectRefusal(
      await api().post(at(await api().run('conformance-noop'), 'noop'), ACCEPT),
      404,
      'interrupt_not_found',
    );
  });

  it.each([
    ['no body', undefined],
    ['no answer', {}],
    ['a list', [{ resumeValue: { action: 'accept' } }]],
    ['a word', '"accept"'],
    ['an answer beside the point', { action: 'accept' }],
    ['more than an answer', { resumeValue: { action: 'accept' }, decidedBy: 'somebody-else' }],
    ['an action that nobody knows', { resumeValue: { action: 'maybe' } }],
    ['an action that the gate does not take', { resumeValue: { action: 'edit-accept', editedArtifactData: 1 } }],
    ['what only the host may say', { resumeValue: { action: 'timeout' } }],
    ['an answer that is none', { resumeValue: null }],
  ])('does not take %s for an answer', async (_what, body) => {
    const { runId } = await waitingRun(api(), 'conformance-approval');
    await expectUnmoved(runId, async () => {
      const headers = { 'content-type': 'application/json' };
      expectRefusal(await api().request('POST', at(runId), body, headers), 400, 'validation_error');
    });
  });

  it('does not take what is not JSON', async () => {
    const { runId } = await waitingRun(api(), 'conformance-approval');
    await expectUnmoved(runId, async () => {
      const send = (body: string, type: string): Promise<Answer> =>
        api().request('POST', at(runId), body, { 'content-type': type });
      expectRefusal(await send('{"resumeValue":', 'application/json'), 400, 'validation_error');
      expectRefusal(await send('resumeValue=accept', 'text/plain'), 415, 'unsupported_media_type');
    });
  });

  it('a second answer is too late, whatever it says and however the run went on', async () => {
    const nodes = [approval('gate'), approval('next')];
    const { runId } = await waitingRun(api(), await register(api(), workflow(nodes, line('gate', 'next'))));
    await resolve(api(), runId, 'gate', { action: 'accept' });
    for (const value of [{ action: 'accept' }, { action: 'reject' }, 'nonsense']) {
      expectRefusal(await resolve(api(), runId, 'gate', value), 409, 'interrupt_already_resolved');
    }
    await waits(api(), runId);
    await resolve(api(), runId, 'next', { action: 'accept' });
    await api().ended(runId);
    expectRefusal(await resolve(api(), runId, 'next', { action: 'accept' }), 409, 'interrupt_already_resolved');
    expect(await eventsOf(api(), runId, 'interrupt.resolved')).toHaveLength(2);
  });

  it('what a run waited for when it was cancelled is gone', async () => {
    const { runId } = await waitingRun(api(), 'conformance-clarification');
    expect((await api().post(`/v1/runs/${runId}/cancel`)).body.status).toBe('cancelled');
    expectRefusal(await resolve(api(), runId, 'ask', { answers: { q1: 'blue' } }), 410, 'interrupt_gone');
  });

  it('what a run waited for when something else failed it is gone', async () => {
    const nodes = [approval('gate'), approval('slow')];
    const { runId } = await waitingRun(api(), await register(api(), workflow(nodes)));
    await resolve(api(), runId, 'slow', { action: 'reject' });
    expect((await api().ended(runId)).error.code).toBe('approval_rejected');
    expectRefusal(await resolve(api(), runId, 'gate', { action: 'accept' }), 410, 'interrupt_gone');
  });

  it('an approval that nobody gave in time is rejected: silence is no consent', async () => {
    const runId = await api().run('conformance-approval-timeout');
    const { status, error } = await api().ended(runId);
    expect({ status, code: error.code }).toEqual({ status: 'failed', code: 'approval_timeout' });
    const [resolved] = await eventsOf(api(), runId, 'interrupt.resolved');
    expect(resolved.payload).toMatchObject({ outcome: 'rejected', reason: 'timeout' });
    const [received] = await eventsOf(api(), runId, 'approval.received');
    expect(received.payload).toEqual({ nodeId: 'gate', action: 'timeout' });
    expectRefusal(await resolve(api(), runId, 'gate', { action: 'accept' }), 409, 'interrupt_already_resolved');
  });

  it('anything else that nobody answered in time fails its node, which an edge may catch', async () => {
    const wait = interrupt('wait', 'custom', { customKind: 'c' }, { timeoutMs: 30 });
    const runId = await api().run(await register(api(), workflow([wait])));
    const { status, error } = await api().ended(runId);
    expect({ status, code: error.code }).toEqual({ status: 'failed', code: 'interrupt_expired' });
    expectRefusal(await resolve(api(), runId, 'wait', 1), 410, 'interrupt_expired');
    expect(await eventsOf(api(), runId, 'interrupt.resolved')).toEqual([]);
    const caught = workflow([wait, node('rescue')], [edge('wait', 'rescue', { triggerRule: 'any_failed' })]);
    const ended = await api().ended(await api().run(await register(api(), caught)));
    expect(ended.status).toBe('completed');
    expect(ended.nodeStates.rescue.status).toBe('completed');
  });

  it('a key of the whole tenant answers for each of its workspaces', async () => {
    const north = host().as('workspace');
    const { runId } = await waitingRun(north, 'conformance-approval');
    expect((await resolve(api(), runId, 'gate', { action: 'accept' })).status).toBe(200);
    expect((await north.ended(runId)).status).toBe('completed');
  });

  it('nodes may be called anything', async () => {
    for (const id of ['a b', 'ä/ö?#%', 'x'.repeat(300), '../../etc', ':colon:', '%2F']) {
      const { runId, currentNodeId } = await waitingRun(api(), await register(api(), workflow([approval(id)])));
      expect(currentNodeId).toBe(id);
      const answer = await resolve(api(), runId, id, { action: 'accept' });
      expect(answer.body, id).toEqual({ runId, nodeId: id, status: 'running' });
      expect((await api().ended(runId)).status).toBe('completed');
    }
  });

  it('a run that waits is not paused, and says what it does instead', async () => {
    const { runId } = await waitingRun(api(), 'conformance-approval');
    await expectUnmoved(runId, async () => {
      const answer = await api().post(`/v1/runs/${runId}:pause`);
      expectRefusal(answer, 409, 'run_state_conflict');
      expect(answer.body.details.runStatus).toBe('waiting-approval');
    });
  });

  it('a paused run takes answers, and goes on with them when it is resumed', async () => {
    const nodes = [approval('gate'), node('wait', 'core.delay', { config: { ms: 60_000 } }), node('after')];
    const runId = await api().run(await register(api(), workflow(nodes, [edge('gate', 'after')])));
    await api().until(runId, (snapshot) => (snapshot as Answer['body']).nodeStates.gate?.status === 'suspended');
    expect((await api().post(`/v1/runs/${runId}:pause`, { drainPolicy: 'immediate' })).status).toBe(202);
    expect((await resolve(api(), runId, 'gate', { action: 'accept' })).body.status).toBe('paused');
    expect((await api().get(`/v1/runs/${runId}`)).body.nodeStates.after).toBeUndefined();
    expect((await api().post(`/v1/runs/${runId}:resume`)).status).toBe(202);
    await api().until(runId, (snapshot) => (snapshot as Answer['body']).nodeStates.after?.status === 'completed');
    await api().post(`/v1/runs/${runId}/cancel`);
  });

  describe('with an idempotency key', () => {
    const keyed = (key: string) => ({ 'idempotency-key': key });

    it('an answer is given once, and acknowledged the same way again', async () => {
      const { runId } = await waitingRun(api(), 'conformance-approval');
      const key = keyed(`once-${runId}`);
      const first = await resolve(api(), runId, 'gate', { action: 'accept' }, key);
      await api().ended(runId);
      const again = await resolve(api(), runId, 'gate', { action: 'accept' }, key);
      expect([first.status, again.status]).toEqual([200, 200]);
      expect(again.text).toBe(first.text);
      expect(again.headers.get('openwop-idempotent-replay')).toBe('true');
      expect(await eventsOf(api(), runId, 'interrupt.resolved')).toHaveLength(1);
      const other = await resolve(api(), runId, 'gate', { action: 'reject' }, key);
      expectRefusal(other, 409, 'idempotency_key_mismatch');
    });

    it('a vote that is sent again, even at the same time, is one vote', async () => {
      const { runId } = await waitingRun(api(), 'conformance-interrupt-quorum');
      const vote = { action: 'accept', voter: 'ada' };
      const sent = Array.from({ length: 5 }, () => resolve(api(), runId, 'gate', vote, keyed(`vote-${runId}`)));
      for (const { status, body } of await Promise.all(sent)) {
        expect({ status, body }).toEqual({ status: 200, body: { runId, nodeId: 'gate', status: 'waiting-approval' } });
      }
      expect(await eventsOf(api(), runId, 'approval.received')).toHaveLength(1);
    });

    it('keys of other tenants are other keys', async () => {
      const mine = await waitingRun(api(), 'conformance-approval');
      const theirs = await waitingRun(host().as('other'), 'conformance-approval');
      for (const [by, { runId }] of [[api(), mine] as const, [host().as('other'), theirs] as const]) {
        expect((await resolve(by, runId, 'gate', { action: 'accept' }, keyed('shared-by-chance'))).status).toBe(200);
        expect((await by.ended(runId)).status).toBe('completed');
      }
    });
  });
});

onEachStore('a parent and a child that waits', (host) => {
  const api = () => host().as('editor');
  const FAMILY = 'conformance-interrupt-parent-child-cancel';

  /** A parent that waits, its child, and a token of the child. */
  async function family(workflowId = FAMILY): Promise<{ parent: Answer['body']; child: Answer['body'] }> {
    const parent = await waitingRun(api(), workflowId);
    const [{ runId }] = parent.childRuns;
    return { parent, child: await waits(api(), runId) };
  }

  it('wait for the same, and go on together', async () => {
    const { parent, child } = await family();
    expect(parent).toMatchObject({ status: 'waiting-approval', currentNodeId: 'spawn-child' });
    expect(parent.childRuns).toEqual([{ runId: child.runId, status: 'waiting-approval' }]);
    expect(child).toMatchObject({
      currentNodeId: 'child-gate',
      parentRunId: parent.runId,
      parentNodeId: 'spawn-child',
    });
    await resolve(api(), child.runId, 'child-gate', { action: 'accept' });
    expect((await api().ended(parent.runId)).status).toBe('completed');
    expect((await api().get(`/v1/runs/${child.runId}`)).body.status).toBe('completed');
  });

  it.each([
    ['waiting-input', interrupt('ask', 'custom', { customKind: 'c' }), 1],
    ['waiting-external', interrupt('ask', 'external-event', { eventType: 'e', correlation: {} }), {}],
  ])('show %s alike, over two generations', async (status, asks, answer) => {
    const call = (workflowId: string) => node('call', 'core.subWorkflow', { config: { workflowId } });
    const child = await register(api(), workflow([asks]));
    const middle = await register(api(), workflow([call(child)]));
    const top = await waitingRun(api(), await register(api(), workflow([call(middle)])));
    expect(top).toMatchObject({ status, currentNodeId: 'call' });
    const [{ runId: middleId }] = top.childRuns;
    const [{ runId: childId }] = (await waits(api(), middleId)).childRuns;
    expect((await resolve(api(), childId, 'ask', answer)).status).toBe(200);
    expect((await api().ended(top.runId)).status).toBe('completed');
  });

  it('are cancelled together, and what the child asked is gone', async () => {
    const { parent, child } = await family();
    expect((await api().post(`/v1/runs/${parent.runId}/cancel`)).status).toBe(200);
    expect((await api().ended(child.runId)).status).toBe('cancelled');
    expect((await api().get(`/v1/runs/${parent.runId}`)).body.status).toBe('cancelled');
    const [cascaded] = await eventsOf(api(), child.runId, 'run.cancelled');
    expect(cascaded.payload).toMatchObject({ reason: 'parent-cancelled', parentRunId: parent.runId });
    const [direct] = await eventsOf(api(), parent.runId, 'run.cancelled');
    expect(direct.payload).not.toHaveProperty('parentRunId');
    const accept = { action: 'accept' };
    expectRefusal(await resolve(api(), child.runId, 'child-gate', accept), 410, 'interrupt_gone');
    const byToken = await host().anonymous.post(`/v1/interrupts/${child.interrupt.interruptToken}`, {
      resumeValue: accept,
    });
    expectRefusal(byToken, 409, 'interrupt_already_resolved');
    expect(await eventsOf(api(), child.runId, 'interrupt.resolved')).toEqual([]);
  });

  it('part when the child is cancelled: the parent fails', async () => {
    const { parent, child } = await family();
    expect((await api().post(`/v1/runs/${child.runId}/cancel`)).status).toBe(200);
    expect((await api().ended(parent.runId)).status).toBe('failed');
    expectRefusal(await resolve(api(), child.runId, 'child-gate', { action: 'accept' }), 410, 'interrupt_gone');
  });

  it('part where the definition lets the child go on alone', async () => {
    const child = await register(api(), workflow([approval('gate')]));
    const config = { workflowId: child, propagateCancellation: false };
    const alone = await register(api(), workflow([node('call', 'core.subWorkflow', { config })]));
    const { parent, child: waiting } = await family(alone);
    await api().post(`/v1/runs/${parent.runId}/cancel`);
    expect((await api().ended(parent.runId)).status).toBe('cancelled');
    expect((await resolve(api(), waiting.runId, 'gate', { action: 'accept' })).status).toBe(200);
    expect((await api().ended(waiting.runId)).status).toBe('completed');
  });
});

onOneStore('what interrupts leave in the log', (host) => {
  const schemas = loadSchemas();
  const api = () => host().as('editor');

  let told: Promise<string[]> | undefined;
  const everything = (): Promise<string[]> => {
    told ??= tellEverything();
    return told;
  };

  /** A run in which everything that can be asked is asked and answered in some way. */
  async function tellEverything(): Promise<string[]> {
    const custom = interrupt('custom', 'custom', { customKind: 'c' }, { resumeSchema: { type: 'object' } });
    const unsure = interrupt('unsure', 'low-confidence', { agentId: 'abc', threshold: 0.7, observed: 0.1 });
    const event = interrupt('event', 'external-event', { eventType: 'e', correlation: { id: 1 } });
    const late = interrupt('late', 'custom', { customKind: 'c' }, { timeoutMs: 20 });
    const gate = governanceGate('governed', {
      requiredRole: 'editor',
      quorum: 2,
      override: { requiredRole: 'editor' },
    });
    const asked = approval('asked', {
      requiredApprovals: 2,
      approversList: ['editor-of-alpha', 'owner-of-alpha'],
      timeoutMs: 60_000,
    });
    const edges = [edge('late', 'rescue', { triggerRule: 'any_failed' })];
    const questions = clarification('questions', [{ id: 'q', question: 'Why?', schema: { type: 'string' } }]);
    const nodes = [custom, unsure, event, late, node('rescue'), gate, asked, questions];
    const runId = await api().run(await register(api(), workflow(nodes, edges)));
    await waits(api(), runId);
    const answers: [string, unknown][] = [
      ['custom', { any: 'thing' }],
      ['unsure', null],
      ['event', { id: 1 }],
      ['governed', { decision: 'granted' }],
      ['asked', { action: 'ask', question: 'Who?' }],
      ['asked', { action: 'refine', refineFeedback: { scope: 'items', itemIds: ['1'], tags: ['x'] } }],
      ['questions', { answers: [{ id: 'q', answer: 'because' }] }],
    ];
    for (const [nodeId, value] of answers) {
      expect((await resolve(api(), runId, nodeId, value)).status, nodeId).toBe(200);
    }
    expect(
      (await resolve(host().as('owner'), runId, 'governed', { decision: 'overridden', reason: 'now' })).status,
    ).toBe(200);
    await api().until(runId, (snapshot) => (snapshot as Answer['body']).interrupt?.key === 'asked:1');
    await resolve(api(), runId, 'asked', { action: 'edit-accept', editedArtifactData: [1], feedback: 'so' });
    await resolve(host().as('owner'), runId, 'asked', { action: 'accept' });
    expect((await api().ended(runId)).status).toBe('completed');
    const denied = await waitingRun(
      api(),
      await register(api(), workflow([governanceGate('gate', { requiredRole: 'owner' })])),
    );
    expect((await resolve(api(), denied.runId, 'gate', { decision: 'rejected', reason: 'no' })).status).toBe(403);
    expect((await resolve(host().as('owner'), denied.runId, 'gate', { decision: 'granted' })).status).toBe(200);
    const rejected = await waitingRun(
      api(),
      await register(api(), workflow([governanceGate('gate', { requiredRole: 'editor' })])),
    );
    await resolve(api(), rejected.runId, 'gate', { decision: 'rejected', reason: 'no' });
    const timeout = await api().run(await register(api(), workflow([approval('gate', { timeoutMs: 20 })])));
    const all = [runId, denied.runId, rejected.runId, timeout];
    for (const each of all) await api().ended(each);
    return all;
  }

  it(`fits the schemas of ${schemas.from}, every event and every payload`, async () => {
    const events = (await Promise.all((await everything()).map((runId) => api().events(runId)))).flat();
    for (const event of events) {
      expect(schemas.event(event), JSON.stringify(event)).toEqual([]);
      expect(schemas.payload(event.type)?.(event.payload) ?? [], JSON.stringify(event)).toEqual([]);
    }
    const types = new Set(events.map(({ type }) => type));
    for (const type of [
      'node.suspended',
      'node.resumed',
      'interrupt.requested',
      'interrupt.resolved',
      'approval.requested',
      'approval.received',
      'approval.granted',
      'approval.rejected',
      'approval.overridden',
      'authorization.decided',
      'clarification.requested',
      'clarification.resolved',
    ]) {
      expect(types, type).toContain(type);
    }
  });

  it('is one request, one resolution and one resumption for each interrupt, in that order', async () => {
    const runId = (await everything())[0]!;
    const events = await api().events(runId);
    const suspended = events.filter(({ type }) => type === 'node.suspended');
    expect(suspended.length).toBeGreaterThan(7);
    for (const { nodeId, payload, sequence } of suspended) {
      const ofIt = events.filter((event) => event.payload.interruptId === payload.interruptId);
      const types = ofIt.map(({ type }) => type).filter((type) => type !== 'clarification.requested');
      expect(events[sequence + 1]).toMatchObject({ type: 'interrupt.requested', nodeId });
      expect(events[sequence + 1].payload.key).toBe(payload.key);
      expect(types).toEqual(
        nodeId === 'late' ? ['node.suspended'] : ['node.suspended', 'interrupt.resolved', 'node.resumed'],
      );
    }
  });

  it('fits the schema as a snapshot, too, whatever the run waits for', async () => {
    for (const workflowId of [
      'conformance-approval',
      'conformance-clarification',
      'conformance-interrupt-external-event',
      'conformance-interrupt-parent-child-cancel',
    ]) {
      const snapshot = await waitingRun(api(), workflowId);
      expect(schemas.snapshot(snapshot), JSON.stringify(snapshot)).toEqual([]);
    }
  });

  it('is seen live by those who stream updates', async () => {
    const runId = await api().run('conformance-approval');
    const stream = api().frames(`/v1/runs/${runId}/events?streamMode=updates`);
    await waits(api(), runId);
    await resolve(api(), runId, 'gate', { action: 'accept' });
    const { frames, isEnded } = await stream;
    expect(isEnded).toBe(true);
    expect(frames.map(({ event }) => event)).toEqual(
      expect.arrayContaining(['interrupt.requested', 'approval.requested', 'approval.received', 'interrupt.resolved']),
    );
  });
});
