import { describe, expect, it } from 'vitest';
import type { WorkflowNode } from '../../src/protocol/running/workflows.ts';
import type { Answer, Api } from '../support/api.ts';
import { edge, expression, line, node, register, variable, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { approval, governanceGate, interrupt, resolve, waitingRun, waits } from '../support/interrupts.ts';
import { onOneStore } from '../support/stores.ts';

/** An approval is for the definition, inputs and options that its gate saw: a fork that changes them asks again. */

type Body = Answer['body'];

const ASKED = 10;
const STOLEN = 1_000_000;
const THEFT = { inputs: { amount: STOLEN } };
const amount = { inputs: { amount: variable('amount') } };
const pay = node('pay', 'core.identity', amount);
const variables = [{ name: 'amount', type: 'number' as const, defaultValue: 1 }];
const ACCEPT = { action: 'accept' };
const GRANT = { decision: 'granted' };

/** A gate of each kind, the answers that it takes to pass, and who gives them. */
const GATES: readonly [string, WorkflowNode, readonly (readonly ['owner' | 'reviewer', object])[]][] = [
  ['an approval', approval('gate', {}, amount), [['owner', ACCEPT]]],
  [
    'a vote',
    approval('gate', { requiredApprovals: 2 }, amount),
    [
      ['owner', ACCEPT],
      ['reviewer', ACCEPT],
    ],
  ],
  [
    'a governance gate',
    governanceGate('gate', { requiredRole: 'reviewer', quorum: 2 }, amount),
    [
      ['owner', GRANT],
      ['reviewer', GRANT],
    ],
  ],
  [
    'an approval in the words of the protocol',
    interrupt('gate', 'approval', { artifactId: 'a', artifactType: 't', title: 'Pay?', actions: ['accept', 'reject'] }),
    [['owner', ACCEPT]],
  ],
];

onOneStore('a fork past a gate', (host) => {
  const api = (): Api => host().as('editor');
  const fork = (runId: string, body: object): Promise<Answer> => api().post(`/v1/runs/${runId}:fork`, body);
  const forked = async (runId: string, body: object): Promise<string> => {
    const answer = await fork(runId, body);
    expect(answer.status, answer.text).toBe(201);
    return answer.body.runId;
  };
  const branch = (runId: string, fromSeq: number, runOptionsOverlay: object = {}): Promise<string> =>
    forked(runId, { mode: 'branch', fromSeq, runOptionsOverlay });
  const answerAll = async (runId: string, answers: (typeof GATES)[number][2]): Promise<void> => {
    for (const [who, value] of answers) {
      const answer = await resolve(host().as(who), runId, 'gate', value);
      expect(answer.status, answer.text).toBe(200);
    }
  };
  const paid = async (
    gate: WorkflowNode,
    answers: (typeof GATES)[number][2],
  ): Promise<{ runId: string; workflowId: string; events: Body[] }> => {
    const workflowId = await register(api(), workflow([gate, pay], line('gate', 'pay'), { variables }));
    const { runId } = await waitingRun(api(), workflowId, { inputs: { amount: ASKED } });
    await answerAll(runId, answers);
    expect((await api().ended(runId)).nodeStates.pay.outputs).toMatchObject({ amount: ASKED });
    return { runId, workflowId, events: await api().events(runId) };
  };
  const expectAsking = async (runId: string): Promise<void> => {
    const { status, nodeStates } = await waits(api(), runId);
    expect({ status, pay: nodeStates.pay?.status }).toEqual({ status: 'waiting-approval', pay: undefined });
  };

  describe.each(GATES)('of %s', (_kind, gate, answers) => {
    it('with other inputs asks again, wherever it begins, and pays what was approved then', async () => {
      const { runId, events } = await paid(gate, answers);
      for (let fromSeq = 1; fromSeq < events.length; fromSeq++) {
        const branched = await branch(runId, fromSeq, THEFT);
        await expectAsking(branched);
        // Earlier votes do not count either: all are given again.
        await answerAll(branched, answers);
        expect((await api().ended(branched)).nodeStates.pay.outputs).toMatchObject({ amount: STOLEN });
      }
    });

    it('with another version asks again', async () => {
      const { runId, workflowId, events } = await paid(gate, answers);
      const dear = node('pay', 'core.identity', { inputs: { amount: expression(`${STOLEN}`) } });
      await register(api(), workflow([gate, dear], line('gate', 'pay'), { id: workflowId, variables }));
      const at = events.findIndex(({ type, nodeId }) => type === 'node.completed' && nodeId === 'gate') + 1;
      await expectAsking(await branch(runId, at, { workflowVersion: 2 }));
    });

    it('with nothing changed keeps the approval', async () => {
      const { runId, events } = await paid(gate, answers);
      const at = events.findIndex(({ type, nodeId }) => type === 'node.completed' && nodeId === 'gate') + 1;
      const kept = [
        await branch(runId, at),
        await branch(runId, at, { inputs: { amount: ASKED }, tags: ['again'], metadata: { why: 'a look' } }),
        await forked(runId, { mode: 'replay' }),
        await forked(runId, { mode: 'replay', fromSeq: at }),
      ];
      for (const id of kept) {
        const { status, nodeStates } = await api().ended(id);
        expect({ status, paid: nodeStates.pay.outputs.amount }).toEqual({ status: 'completed', paid: ASKED });
      }
    });
  });

  const [, GATE, ANSWERS] = GATES[0]!;

  it('asks again if it is a fork of a fork that had to, wherever it begins', async () => {
    const { runId, events } = await paid(GATE, ANSWERS);
    const changed = await branch(runId, events.length - 1, THEFT);
    await expectAsking(changed);
    const { length } = await api().events(changed);
    for (let fromSeq = 1; fromSeq <= length; fromSeq++) await expectAsking(await branch(changed, fromSeq));
    await answerAll(changed, ANSWERS);
    await api().ended(changed);
    const all = await api().events(changed);
    for (let fromSeq = 1; fromSeq < events.length - 1; fromSeq++) await expectAsking(await branch(changed, fromSeq));
    const at = all.findLastIndex(({ type, nodeId }) => type === 'node.completed' && nodeId === 'gate') + 1;
    expect((await api().ended(await branch(changed, at))).status).toBe('completed');
    const replayed = await api().ended(await forked(changed, { mode: 'replay', fromSeq: all.length - 1 }));
    expect(replayed.nodeStates.pay.outputs).toMatchObject({ amount: STOLEN });
  });

  it('asks for every gate that its version has before what is done already', async () => {
    const before = workflow([node('check'), pay], line('check', 'pay'), { variables });
    await register(api(), before);
    const runId = await api().run(before.id, { inputs: { amount: ASKED } });
    await api().ended(runId);
    const nodes = [approval('gate', {}, amount), node('check'), pay];
    await register(api(), workflow(nodes, line('gate', 'check', 'pay'), { id: before.id, variables }));
    for (const fromSeq of [1, 3, 4]) await expectAsking(await branch(runId, fromSeq, { workflowVersion: 2 }));
  });

  it('asks again where the gate is in a sub-workflow', async () => {
    const child = await register(api(), workflow([approval('gate')]));
    const sub = node('sub', 'core.subWorkflow', { config: { workflowId: child } });
    const parent = await register(api(), workflow([sub, pay], line('sub', 'pay'), { variables }));
    const { runId } = await waitingRun(api(), parent, { inputs: { amount: ASKED } });
    const [{ runId: childId }] = (await api().get(`/v1/runs/${runId}`)).body.childRuns;
    await answerAll(childId, ANSWERS);
    await api().ended(runId);
    const events = await api().events(runId);
    const at = events.findIndex(({ type, nodeId }) => type === 'node.completed' && nodeId === 'sub') + 1;
    await expectAsking(await branch(runId, at, THEFT));
  });

  it('has a verdict given again on what has changed', async () => {
    const verify = node('gate', 'vendor.capstan.verify', {
      config: { kind: 'criteria', criteria: [{ key: 'small', expression: 'variables.amount < 100' }] },
      ...amount,
    });
    const workflowId = await register(api(), workflow([verify, pay], line('gate', 'pay'), { variables }));
    const runId = await api().run(workflowId, { inputs: { amount: ASKED } });
    expect((await api().ended(runId)).status).toBe('completed');
    const { length } = await api().events(runId);
    for (let fromSeq = 1; fromSeq < length; fromSeq++) {
      const { status, error, nodeStates } = await api().ended(await branch(runId, fromSeq, THEFT));
      expect({ status, code: error?.code, pay: nodeStates.pay?.status }).toEqual({
        status: 'failed',
        code: 'verification_failed',
        pay: undefined,
      });
    }
  });

  it('does not let an earlier approval be read from outside the path of the gate', async () => {
    const spy = node('spy', 'core.identity', {
      inputs: { action: { type: 'connection', nodeId: 'gate', outputKey: 'action', optional: true } },
    });
    const nodes = [GATE, pay, node('wait', 'core.delay', { config: { delayMs: 1 } }), spy];
    const edges = [edge('gate', 'pay'), edge('wait', 'spy')];
    const workflowId = await register(api(), workflow(nodes, edges, { variables }));
    const { runId } = await waitingRun(api(), workflowId, { inputs: { amount: ASKED } });
    await answerAll(runId, ANSWERS);
    await api().ended(runId);
    const events = await api().events(runId);
    const branched = await branch(runId, events.findIndex(({ type }) => type === 'node.started') + 1, THEFT);
    const { nodeStates } = await waits(api(), branched);
    expect(nodeStates.spy?.outputs?.action).toBeUndefined();
  });

  it('is in the audit log with the gates that were reopened', async () => {
    const { runId, events } = await paid(GATE, ANSWERS);
    const branched = await branch(runId, events.length - 1, THEFT);
    const { body } = await host().as('owner').get('/v1/host/capstan/audit?action=run.fork&limit=50');
    const entry = body.items.find(({ details }: Body) => details?.runId === branched);
    expect(entry.details).toMatchObject({ mode: 'branch', reopenedGates: ['gate'] });
  });

  it('cannot be answered with the token of the gate before', async () => {
    const workflowId = await register(api(), workflow([GATE, pay], line('gate', 'pay'), { variables }));
    const { runId, interrupt: asked } = await waitingRun(api(), workflowId, { inputs: { amount: ASKED } });
    const events = await api().events(runId);
    const branched = await branch(runId, events.length, THEFT);
    await expectAsking(branched);
    const answer = { resumeValue: ACCEPT };
    expect((await host().anonymous.post(`/v1/interrupts/${asked.interruptToken}`, answer)).status).toBe(200);
    await expectAsking(branched);
    expectRefusal(
      await host().anonymous.post(`/v1/interrupts/${asked.interruptToken}`, answer),
      409,
      'interrupt_already_resolved',
    );
  });
});
