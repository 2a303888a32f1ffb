import { expect, it } from 'vitest';
import { line, node, register, WORKFLOWS, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { clarification, eventsOf, interrupt, resolve, waitingRun, waits } from '../support/interrupts.ts';
import { onEachStore } from '../support/stores.ts';

/** durability.md 1: what nodes ask, who may answer, and what an answer does. */

const ORDER = { orderId: 'fixture-order-1', status: 'completed' };

onEachStore('kinds of interrupts', (host) => {
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
      data: { artifactId: 'gate', artifactType: 'approval', title: 'Approve', actions: ['accept', 'reject'] },
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
