import { describe, expect, it } from 'vitest';
import { type Answer, Api } from '../support/api.ts';
import {
  connection,
  edge,
  fixed,
  line,
  node,
  register,
  variable,
  WORKFLOWS,
  workflow,
} from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { approval, eventsOf, governanceGate, resolve, waitingRun } from '../support/interrupts.ts';
import { keyRecords } from '../support/keys.ts';
import { loadSchemas } from '../support/schemas.ts';
import { onOneStore } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** durability.md 1.4, 1.10, 1.11 and 2: what people decide, who may, and where a decision leads. */

const REFINE = { action: 'refine', refineFeedback: { scope: 'whole', text: 'shorter' } };
const when = (expression: string) => ({ condition: { type: 'expression' as const, expression } });
const decidedIs = (action: string) => when(`output.action == "${action}"`);
const keyOfInterrupt = (key: string) => (snapshot: object) => (snapshot as Answer['body']).interrupt?.key === key;

onOneStore('an approval', (host) => {
  const api = () => host().as('editor');
  const waiting = async (...of: Parameters<typeof workflow>): Promise<Answer['body']> =>
    waitingRun(api(), await register(api(), workflow(...of)));

  it('shows the artifact that comes in on its ports, and none of the inputs of the run', async () => {
    const nodes = [
      node('write', 'core.identity', { inputs: { text: fixed('a draft') } }),
      approval('gate', {}, { inputs: { draft: connection('write', 'text') } }),
    ];
    const workflowId = await register(api(), workflow(nodes, line('write', 'gate')));
    const { runId, interrupt } = await waitingRun(api(), workflowId, { inputs: { private: 'Leuchtboje' } });
    expect(interrupt.data.artifactData).toEqual({ draft: 'a draft' });
    expect(JSON.stringify(await api().events(runId))).not.toContain('Leuchtboje');
  });

  it('hides what is sensitive from everybody but the run, also what an approver made of it', async () => {
    const nodes = [
      approval('gate', {}, { inputs: { note: variable('note'), open: variable('open') } }),
      node('after', 'core.identity', { inputs: { text: connection('gate', 'editedArtifactData') } }),
      node('judge'),
    ];
    const edges = [
      edge('gate', 'after'),
      edge('gate', 'judge', when('output.editedArtifactData.note == "Flaschenpost-2"')),
    ];
    const variables = [
      { name: 'note', type: 'string' as const, defaultValue: 'Flaschenpost-1', sensitive: true },
      { name: 'open', type: 'string' as const, defaultValue: 'for all' },
    ];
    const { runId, interrupt } = await waiting(nodes, edges, { variables });
    expect(interrupt.data.artifactData).toEqual({ note: '[REDACTED]', open: 'for all' });
    const seen = [(await host().anonymous.get(`/v1/interrupts/${interrupt.interruptToken}`)).text];
    await resolve(api(), runId, 'gate', { action: 'edit-accept', editedArtifactData: { note: 'Flaschenpost-2' } });
    const { nodeStates } = await api().ended(runId);
    expect(nodeStates.judge.status).toBe('completed');
    seen.push(
      JSON.stringify(nodeStates),
      JSON.stringify(await api().events(runId)),
      JSON.stringify((await api().frames(`/v1/runs/${runId}/events?streamMode=values`)).frames),
    );
    for (const text of seen) expect(text).not.toContain('Flaschenpost');
  });

  it('passes on what was decided', async () => {
    const nodes = [
      approval('gate'),
      node('after', 'core.identity', { inputs: { text: connection('gate', 'editedArtifactData') } }),
    ];
    const { runId } = await waiting(nodes, line('gate', 'after'));
    const answer = { action: 'edit-accept', editedArtifactData: { text: 'a better draft' }, feedback: 'typos' };
    expect((await resolve(api(), runId, 'gate', answer)).status).toBe(200);
    const { nodeStates } = await api().ended(runId);
    expect(nodeStates.gate.outputs).toEqual({ ...answer, decidedBy: 'editor-of-alpha' });
    expect(nodeStates.after.outputs).toEqual({ text: { text: 'a better draft' } });
    const [received] = await eventsOf(api(), runId, 'approval.received');
    expect(received.payload).toEqual({
      nodeId: 'gate',
      action: 'edit-accept',
      decidedBy: 'editor-of-alpha',
      comment: 'typos',
      editedArtifactData: { text: 'a better draft' },
    });
  });

  it('says who decided, whatever the answer says', async () => {
    const { runId } = await waiting([approval('gate')]);
    await resolve(api(), runId, 'gate', { action: 'accept', decidedBy: 'the-boss', decidedAt: '1999-01-01T00:00:00Z' });
    const [received] = await eventsOf(api(), runId, 'approval.received');
    expect(received.payload).toEqual({ nodeId: 'gate', action: 'accept', decidedBy: 'editor-of-alpha' });
    const [resolved] = await eventsOf(api(), runId, 'interrupt.resolved');
    expect(resolved.payload).toMatchObject({
      resolvedBy: 'editor-of-alpha',
      resumeValue: { decidedBy: 'editor-of-alpha' },
    });
    expect(JSON.stringify(await api().events(runId))).not.toContain('the-boss');
  });

  it('that is rejected fails its run', async () => {
    const { runId } = await waiting([approval('gate'), node('after')], line('gate', 'after'));
    await resolve(api(), runId, 'gate', { action: 'reject', feedback: 'no' });
    const { status, error, nodeStates } = await api().ended(runId);
    expect({ status, code: error.code }).toEqual({ status: 'failed', code: 'approval_rejected' });
    expect(nodeStates.after).toBeUndefined();
  });

  it('that is rejected goes where an edge catches it', async () => {
    const { runId } = await waiting(
      [approval('gate'), node('rescue')],
      [edge('gate', 'rescue', { triggerRule: 'any_failed' })],
    );
    await resolve(api(), runId, 'gate', { action: 'reject' });
    const { status, nodeStates } = await api().ended(runId);
    expect({ status, rescue: nodeStates.rescue.status }).toEqual({ status: 'completed', rescue: 'completed' });
  });

  it.each([
    ['accept', { action: 'accept' }, 'publish'],
    ['reject', { action: 'reject' }, 'archive'],
  ])('on %s goes where its edges send it', async (_action, answer, taken) => {
    const { runId } = await waiting(
      [approval('gate'), node('publish'), node('archive')],
      [edge('gate', 'publish', decidedIs('accept')), edge('gate', 'archive', decidedIs('reject'))],
    );
    await resolve(api(), runId, 'gate', answer);
    const { status, nodeStates } = await api().ended(runId);
    expect(status).toBe('completed');
    for (const id of ['publish', 'archive']) expect(nodeStates[id].status).toBe(id === taken ? 'completed' : 'skipped');
  });

  it('that times out goes where its edges send a no', async () => {
    const nodes = [approval('gate', { timeoutMs: 40 }), node('late')];
    const definition = workflow(nodes, [edge('gate', 'late', decidedIs('timeout'))]);
    const { status, nodeStates } = await api().ended(await api().run(await register(api(), definition)));
    expect({ status, late: nodeStates.late.status }).toEqual({ status: 'completed', late: 'completed' });
  });

  describe('that is not granted', () => {
    const PUBLISH = [node('publish'), node('notify')];
    const NOTIFY = edge('gate', 'notify', decidedIs('reject'));
    const statusesAfter = async (runId: string) => {
      const { status, error, nodeStates } = await api().ended(runId);
      const statusOf = (id: string) => nodeStates[id]?.status;
      return { status, code: error?.code, publish: statusOf('publish'), notify: statusOf('notify') };
    };
    const FAILED = { status: 'failed', code: 'approval_rejected', publish: undefined, notify: undefined };

    it('takes no edge without a condition, whatever other edges there are', async () => {
      const { runId } = await waiting([approval('gate'), ...PUBLISH], [edge('gate', 'publish'), NOTIFY]);
      await resolve(api(), runId, 'gate', { action: 'reject' });
      expect(await statusesAfter(runId)).toEqual({ status: 'completed', publish: 'skipped', notify: 'completed' });
    });

    it('takes no edge that is for another outcome: a timeout is not a rejection', async () => {
      const nodes = [approval('gate', { timeoutMs: 40 }), ...PUBLISH];
      const workflowId = await register(api(), workflow(nodes, [edge('gate', 'publish'), NOTIFY]));
      expect(await statusesAfter(await api().run(workflowId))).toEqual({ ...FAILED, code: 'approval_timeout' });
    });

    it.each([
      ['no condition', {}],
      ['a condition that is for a yes', decidedIs('accept')],
    ])('starts no node by its other edges if the edge of the gate has %s', async (_what, more) => {
      const edges = [...line('draft', 'gate'), edge('draft', 'publish'), edge('gate', 'publish', more), NOTIFY];
      const { runId } = await waiting([node('draft'), approval('gate'), ...PUBLISH], edges);
      await resolve(api(), runId, 'gate', { action: 'reject' });
      expect(await statusesAfter(runId)).toEqual({ status: 'completed', publish: 'skipped', notify: 'completed' });
    });

    it.each([['true'], ['inputs.amount < 100'], ['output.action != "refine"'], ['has(output.decidedBy)']])(
      'takes no edge whose condition %s says nothing about it',
      async (expression) => {
        const nodes = [approval('gate'), node('publish')];
        const workflowId = await register(api(), workflow(nodes, [edge('gate', 'publish', when(expression))]));
        const { runId } = await waitingRun(api(), workflowId, { inputs: { amount: 7 } });
        await resolve(api(), runId, 'gate', { action: 'reject' });
        expect(await statusesAfter(runId)).toEqual(FAILED);
      },
    );

    it('takes edges for its outcome and those that wait for a failure', async () => {
      const edges = [edge('gate', 'publish'), NOTIFY, edge('gate', 'rescue', { triggerRule: 'any_failed' })];
      const { runId } = await waiting([approval('gate'), ...PUBLISH, node('rescue')], edges);
      await resolve(api(), runId, 'gate', { action: 'reject' });
      expect(await statusesAfter(runId)).toEqual({ status: 'completed', publish: 'skipped', notify: 'completed' });
      expect((await api().get(`/v1/runs/${runId}`)).body.nodeStates.rescue.status).toBe('completed');
    });

    it.each([
      ['any_failed', 'reject'],
      ['any_failed', 'timeout'],
      ['all_complete', 'reject'],
      ['all_complete', 'accept'],
    ] as const)('starts a node under %s by an edge whose condition names %s', async (triggerRule, outcome) => {
      const edges = [edge('gate', 'publish'), NOTIFY, edge('gate', 'rescue', { ...decidedIs(outcome), triggerRule })];
      const { runId } = await waiting([approval('gate'), ...PUBLISH, node('rescue')], edges);
      await resolve(api(), runId, 'gate', { action: 'reject' });
      expect(await statusesAfter(runId)).toEqual({ status: 'completed', publish: 'skipped', notify: 'completed' });
      expect((await api().get(`/v1/runs/${runId}`)).body.nodeStates.rescue.status).toBe('completed');
    });

    it('is asked for again if it is to be refined and no edge is for that', async () => {
      const { runId } = await waiting([approval('gate'), ...PUBLISH], [edge('gate', 'publish'), NOTIFY]);
      await resolve(api(), runId, 'gate', REFINE);
      await api().until(runId, keyOfInterrupt('gate:1'));
      await resolve(api(), runId, 'gate', { action: 'accept' });
      expect(await statusesAfter(runId)).toEqual({ status: 'completed', publish: 'completed', notify: 'skipped' });
    });

    it('fails its run when a plain interrupt asked for it, too', async () => {
      const data = { artifactId: 'a', artifactType: 'text', title: 'Approve', actions: ['accept', 'reject'] };
      const gate = node('gate', 'core.interrupt', { config: { kind: 'approval', data } });
      const { runId } = await waiting([gate, node('publish')], line('gate', 'publish'));
      await resolve(api(), runId, 'gate', { action: 'reject' });
      expect(await statusesAfter(runId)).toEqual(FAILED);
    });
  });

  it('is never called by the old word for an edit in discovery', async () => {
    expect((await host().anonymous.get('/.well-known/openwop')).text).not.toContain('"edit"');
  });

  it('is not timed by what an attempt at its node may take', async () => {
    const { runId } = await waiting(
      [approval('gate', {}, { settings: { timeoutMs: 50 } }), node('after')],
      line('gate', 'after'),
    );
    const slow = await api().run('conformance-delay', { inputs: { delayMs: 150 } });
    await api().ended(slow);
    expect((await resolve(api(), runId, 'gate', { action: 'accept' })).status).toBe(200);
    expect((await api().ended(runId)).status).toBe('completed');
  });

  describe('to be refined', () => {
    it('is asked for again at the other gate, too, whose approval was of the draft before', async () => {
      const nodes = [node('draft'), approval('one'), approval('two'), node('publish')];
      const on = [edge('draft', 'one'), edge('draft', 'two'), edge('one', 'publish'), edge('two', 'publish')];
      const back = ['one', 'two'].map((gate) => edge(gate, 'draft', decidedIs('refine')));
      const runId = await api().run(await register(api(), workflow(nodes, [...on, ...back])));
      const asked = (gate: string, times: number) =>
        until(
          async () => (await eventsOf(api(), runId, 'interrupt.requested')).filter(({ nodeId }) => nodeId === gate),
          ({ length }) => length === times,
        );
      const decide = async (gate: string, decision: object) =>
        expect((await resolve(api(), runId, gate, decision)).status).toBe(200);
      await Promise.all([asked('one', 1), asked('two', 1)]);
      await decide('one', REFINE);
      await asked('one', 2);
      await decide('one', { action: 'accept' });
      await decide('two', { action: 'accept' });
      await asked('two', 2);
      const started = async () =>
        (await eventsOf(api(), runId, 'node.started')).filter(({ nodeId }) => nodeId === 'publish');
      expect(await started()).toEqual([]);
      await decide('two', { action: 'accept' });
      expect((await api().ended(runId)).status).toBe('completed');
      expect(await started()).toHaveLength(1);
    });

    it('is asked for again, with what was said, until somebody is content', async () => {
      const { runId, interrupt } = await waiting([approval('gate')]);
      expect(interrupt.key).toBe('gate:0');
      for (const round of [1, 2, 3]) {
        expect((await resolve(api(), runId, 'gate', REFINE)).status).toBe(200);
        const { interrupt: again } = await api().until(runId, keyOfInterrupt(`gate:${round}`));
        expect(again.data.refineFeedback).toEqual(REFINE.refineFeedback);
        expect(again.interruptId).not.toBe(interrupt.interruptId);
      }
      await resolve(api(), runId, 'gate', { action: 'accept' });
      expect((await api().ended(runId)).status).toBe('completed');
      const requested = await eventsOf(api(), runId, 'interrupt.requested');
      expect(new Set(requested.map(({ payload }) => payload.key)).size).toBe(4);
      expect(await eventsOf(api(), runId, 'interrupt.resolved')).toHaveLength(4);
    });

    it('goes back over an edge to where the work is done, and what was said arrives there', async () => {
      const nodes = [
        node('write', 'core.identity', { inputs: { note: connection('gate', 'refineFeedback', true) } }),
        approval('gate', {}, { inputs: { draft: connection('write', 'note', true) } }),
        node('publish'),
      ];
      const edges = [
        edge('write', 'gate'),
        edge('gate', 'write', decidedIs('refine')),
        edge('gate', 'publish', decidedIs('accept')),
      ];
      const { runId } = await waiting(nodes, edges);
      await resolve(api(), runId, 'gate', REFINE);
      await api().until(runId, keyOfInterrupt('gate:1'));
      await resolve(api(), runId, 'gate', { action: 'accept' });
      const { status, nodeStates } = await api().ended(runId);
      expect(status).toBe('completed');
      expect(nodeStates.write.outputs).toEqual({ note: REFINE.refineFeedback });
      expect(nodeStates.publish.status).toBe('completed');
    });

    it('starts its quorum over', async () => {
      const { runId } = await waiting([approval('gate', { requiredApprovals: 2 })]);
      await resolve(api(), runId, 'gate', { action: 'accept', voter: 'ada' });
      await resolve(api(), runId, 'gate', { ...REFINE, voter: 'bob' });
      await api().until(runId, keyOfInterrupt('gate:1'));
      expect((await resolve(api(), runId, 'gate', { action: 'accept', voter: 'bob' })).body.status).toBe(
        'waiting-approval',
      );
      expect((await resolve(api(), runId, 'gate', { action: 'accept', voter: 'ada' })).body.status).toBe('running');
      expect((await api().ended(runId)).status).toBe('completed');
    });
  });

  it('is rejected round after round until the loop has gone on long enough', async () => {
    const runId = await api().run('conformance-approval-reject-loopback');
    for (const round of [0, 1, 2]) {
      await api().until(runId, keyOfInterrupt(`gate:${round}`));
      await resolve(api(), runId, 'gate', { action: 'reject' });
    }
    const { status, error } = await api().ended(runId);
    expect({ status, code: error.code }).toEqual({ status: 'failed', code: 'loopback_limit_exceeded' });
    expect(await eventsOf(api(), runId, 'workflow.loopback-limit')).toHaveLength(1);
  });

  it('is asked about without being decided', async () => {
    const { runId } = await waiting([approval('gate')]);
    for (const question of ['Who wrote it?', 'When?']) {
      const answer = await resolve(api(), runId, 'gate', { action: 'ask', question });
      expect(answer.body).toEqual({ runId, nodeId: 'gate', status: 'waiting-approval' });
    }
    const { variables, interrupt } = (await api().get(`/v1/runs/${runId}`)).body;
    expect(variables['_askExchanges:gate']).toEqual([
      { question: 'Who wrote it?', askedBy: 'editor-of-alpha' },
      { question: 'When?', askedBy: 'editor-of-alpha' },
    ]);
    expect(interrupt.key).toBe('gate:0');
    expect(await eventsOf(api(), runId, 'approval.received')).toEqual([]);
    await resolve(api(), runId, 'gate', { action: 'accept' });
    expect((await api().ended(runId)).status).toBe('completed');
  });

  it.each([
    [{ decision: 'approved' }, 'accept', 'completed'],
    [{ decision: 'rejected' }, 'reject', 'failed'],
  ])('takes the older %j', async (answer, action, end) => {
    const { runId } = await waitingRun(api(), 'conformance-approval');
    expect((await resolve(api(), runId, 'gate', answer)).status).toBe(200);
    expect((await api().ended(runId)).status).toBe(end);
    const [received] = await eventsOf(api(), runId, 'approval.received');
    expect(received.payload.action).toBe(action);
  });

  it('takes an older no with a reason as a wish to refine', async () => {
    const { runId } = await waiting([approval('gate')]);
    await resolve(api(), runId, 'gate', { decision: 'rejected', feedback: 'shorter' });
    const { interrupt } = await api().until(runId, keyOfInterrupt('gate:1'));
    expect(interrupt.data.refineFeedback).toEqual({ scope: 'whole', text: 'shorter' });
  });

  describe('by a quorum', () => {
    const vote = (runId: string, action: string, voter?: string) =>
      resolve(api(), runId, 'gate', { action, ...(voter ? { voter } : {}) });

    it('of three needs three voters, who may share a key', async () => {
      const { runId } = await waitingRun(api(), 'conformance-interrupt-quorum');
      for (const voter of ['approver-1', 'approver-2']) {
        expect((await vote(runId, 'accept', voter)).body.status).toBe('waiting-approval');
        expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('waiting-approval');
      }
      expect((await vote(runId, 'accept', 'approver-2')).body.status).toBe('waiting-approval');
      expect((await vote(runId, 'accept', 'approver-3')).body.status).toBe('running');
      expect((await api().ended(runId)).status).toBe('completed');
      const received = await eventsOf(api(), runId, 'approval.received');
      expect(received.map(({ payload }) => payload.decidedBy)).toEqual(
        ['approver-1', 'approver-2', 'approver-3'].map((voter) => `editor-of-alpha#${voter}`),
      );
    });

    it('is rejected by a majority', async () => {
      const { runId } = await waitingRun(api(), 'conformance-interrupt-quorum');
      await vote(runId, 'accept', 'approver-3');
      expect((await vote(runId, 'reject', 'approver-1')).body.status).toBe('waiting-approval');
      expect((await vote(runId, 'reject', 'approver-2')).body.status).toBe('running');
      const { status, error } = await api().ended(runId);
      expect({ status, code: error.code }).toEqual({ status: 'failed', code: 'approval_rejected' });
    });

    it('is vetoed by one where nothing else is said', async () => {
      const { runId } = await waiting([approval('gate', { requiredApprovals: 3 })]);
      await vote(runId, 'accept', 'approver-1');
      expect((await vote(runId, 'reject', 'approver-2')).body.status).toBe('running');
      expect((await api().ended(runId)).status).toBe('failed');
    });

    it('counts keys of different people as different voters, and their labels under their own names', async () => {
      const { runId } = await waiting([approval('gate', { requiredApprovals: 4 })]);
      const by = (who: 'editor' | 'reviewer' | 'owner', voter?: string) =>
        resolve(host().as(who), runId, 'gate', { action: 'accept', ...(voter ? { voter } : {}) });
      await by('editor');
      await by('reviewer', 'editor-of-alpha');
      expect((await by('editor', 'ada')).body.status).toBe('waiting-approval');
      expect((await by('owner', 'ada')).body.status).toBe('running');
    });

    it('changes nothing with a vote that is cast again, and answers it the same', async () => {
      const { runId } = await waitingRun(api(), 'conformance-interrupt-quorum');
      const first = await vote(runId, 'accept', 'approver-1');
      const before = await api().events(runId);
      for (let times = 0; times < 3; times++) {
        const { status, body } = await vote(runId, 'accept', 'approver-1');
        expect({ status, body }).toEqual({ status: first.status, body: first.body });
      }
      expect(await api().events(runId)).toEqual(before);
      expect((await vote(runId, 'reject', 'approver-1')).body.status).toBe('waiting-approval');
      expect(await eventsOf(api(), runId, 'approval.received')).toHaveLength(2);
    });

    it('of listed approvers takes no vote of anybody else', async () => {
      const { runId } = await waiting([approval('gate', { approversList: ['ada', 'reviewer-of-alpha'] })]);
      const before = await api().events(runId);
      for (const voter of ['eve', 'editor-of-alpha', undefined]) {
        expectRefusal(await vote(runId, 'accept', voter), 403, 'forbidden');
        expectRefusal(await vote(runId, 'reject', voter), 403, 'forbidden');
      }
      expect(await api().events(runId)).toEqual(before);
      expect((await resolve(host().as('reviewer'), runId, 'gate', { action: 'accept' })).status).toBe(200);
      expect((await api().ended(runId)).status).toBe('completed');
    });
  });

  describe('that names its approvers', () => {
    const NAMED = [
      { approversList: ['ada', 'editor-of-alpha', 'reviewer-of-alpha'] },
      { approverRoleRefs: ['editor'] },
      { approverGroupRefs: ['finance'] },
    ];
    const data = { artifactId: 'a', artifactType: 'text', title: 'Approve', actions: ['accept', 'reject', 'ask'] };

    it.each(NAMED)('by %j takes no label, whoever gives it', async (named) => {
      const plain = node('gate', 'core.interrupt', { config: { kind: 'approval', data: { ...data, ...named } } });
      for (const gate of [approval('gate', named), plain]) {
        const { runId } = await waiting([gate]);
        const before = await api().events(runId);
        for (const who of ['editor', 'reviewer', 'owner'] as const) {
          for (const answer of [{ action: 'accept' }, { action: 'reject' }, { action: 'ask', question: '?' }]) {
            const refused = await resolve(host().as(who), runId, 'gate', { ...answer, voter: 'ada' });
            expectRefusal(refused, 403, 'forbidden');
          }
        }
        expect(await api().events(runId)).toEqual(before);
      }
    });

    it('counts each approver once, however many labels and keys', async () => {
      const { runId } = await waiting([
        approval('gate', { requiredApprovals: 2, approversList: ['editor-of-alpha', 'reviewer-of-alpha'] }),
      ]);
      const vote = (who: 'editor' | 'reviewer' | 'owner') =>
        resolve(host().as(who), runId, 'gate', { action: 'accept' });
      expect((await vote('editor')).body.status).toBe('waiting-approval');
      expect((await vote('editor')).body.status).toBe('waiting-approval');
      expectRefusal(await vote('owner'), 403, 'forbidden');
      expect((await vote('reviewer')).body.status).toBe('running');
      const received = await eventsOf(api(), runId, 'approval.received');
      expect(received.map(({ payload }) => payload.decidedBy)).toEqual(['editor-of-alpha', 'reviewer-of-alpha']);
    });

    it('by role takes the vote of that role and of higher ones', async () => {
      for (const who of ['reviewer', 'owner'] as const) {
        const { runId, interrupt } = await waiting([approval('gate', { approverRoleRefs: ['reviewer'] })]);
        expect(interrupt.data.approverRoleRefs).toEqual(['reviewer']);
        expectRefusal(await resolve(api(), runId, 'gate', { action: 'accept' }), 403, 'forbidden');
        expect((await resolve(host().as(who), runId, 'gate', { action: 'accept' })).status).toBe(200);
        expect((await api().ended(runId)).status).toBe('completed');
      }
    });

    it.each([{ approverGroupRefs: ['editor', 'reviewer-of-alpha'] }, { approverRoleRefs: ['controller'] }])(
      'by %j is not for keys, which have neither groups nor roles of an identity provider',
      async (named) => {
        const { runId } = await waiting([approval('gate', named)]);
        for (const who of ['editor', 'reviewer', 'owner'] as const) {
          expectRefusal(await resolve(host().as(who), runId, 'gate', { action: 'accept' }), 403, 'forbidden');
        }
      },
    );

    it('is announced by what can be resolved here: roles, for there is no identity provider', async () => {
      const { body } = await host().anonymous.get('/.well-known/openwop');
      expect(body.interrupt).toEqual({ approverRouting: { supported: true, refKinds: ['role'] } });
      expect(loadSchemas().discovery(body)).toEqual([]);
    });
  });
});

const SCOPED = {
  key: 'publisher-by-scope',
  tenant: 'alpha',
  principal: 'publisher',
  scopes: ['approvals:respond', 'packs:publish'],
};
const SAME = { key: 'second-key-of-the-reviewer', tenant: 'alpha', principal: 'reviewer-of-alpha', role: 'reviewer' };

onOneStore(
  'a governance gate',
  (host) => {
    const api = () => host().as('editor');
    const by = (who: 'owner' | 'reviewer' | 'editor', runId: string, value: unknown) =>
      resolve(host().as(who), runId, 'gate', value);
    const atGate = async (
      config: object,
      nodes = [] as ReturnType<typeof node>[],
      edges = [] as ReturnType<typeof edge>[],
    ) => {
      const gate = governanceGate('gate', config as never);
      return waitingRun(api(), await register(api(), workflow([gate, ...nodes], edges)));
    };
    const granted = { decision: 'granted' };
    const overridden = { decision: 'overridden', reason: 'the house is on fire' };

    it('says what it takes, in the interrupt and nowhere else', async () => {
      const config = {
        requiredRole: 'reviewer',
        requiredScope: 'packs:publish',
        quorum: 2,
        override: { requiredRole: 'owner' },
      };
      const { runId, interrupt, status } = await atGate(config);
      expect(status).toBe('waiting-approval');
      expect(interrupt.data).toMatchObject({ gateId: 'gate', ...config });
      const types = (await api().events(runId)).map(({ type }) => type);
      expect(types).toContain('interrupt.requested');
      expect(types).not.toContain('approval.requested');
    });

    it('opens for the role it names and for higher ones', async () => {
      for (const who of ['reviewer', 'owner'] as const) {
        const { runId } = await atGate({ requiredRole: 'reviewer' });
        expect((await by(who, runId, granted)).status).toBe(200);
        const { status, nodeStates } = await api().ended(runId);
        expect({ status, outputs: nodeStates.gate.outputs }).toEqual({ status: 'completed', outputs: granted });
        const [event] = await eventsOf(api(), runId, 'approval.granted');
        expect(event.payload).toEqual({
          gateId: 'gate',
          principal: `${who}-of-alpha`,
          quorumProgress: { granted: 1, required: 1 },
        });
      }
    });

    it('denies others, stays closed, and leaves a trace of it', async () => {
      const { runId } = await atGate({ requiredRole: 'reviewer' });
      const answer = await by('editor', runId, granted);
      expectRefusal(answer, 403, 'forbidden');
      expect(answer.body.details).toEqual({ roleRequired: 'reviewer' });
      const [denied] = await eventsOf(api(), runId, 'authorization.decided');
      expect(denied.payload).toEqual({
        principal: 'editor-of-alpha',
        action: 'approval.granted',
        resource: 'gate',
        allowed: false,
      });
      expect((await api().get(`/v1/runs/${runId}`)).body.status).toBe('waiting-approval');
      expect((await by('reviewer', runId, granted)).status).toBe(200);
      expect((await api().ended(runId)).status).toBe('completed');
    });

    it('asks for the scope by the credential; a key with scopes has no role', async () => {
      const publisher = new Api(host().url, SCOPED.key);
      const byScope = await atGate({ requiredScope: 'packs:publish' });
      expectRefusal(await by('editor', byScope.runId, granted), 403, 'forbidden');
      expect((await resolve(publisher, byScope.runId, 'gate', granted)).status).toBe(200);
      const byRole = await atGate({ requiredRole: 'viewer' });
      expectRefusal(await resolve(publisher, byRole.runId, 'gate', granted), 403, 'forbidden');
    });

    it('takes so many different people, however many keys and labels they have', async () => {
      const { runId } = await atGate({ requiredRole: 'reviewer', quorum: 2 });
      const second = new Api(host().url, SAME.key);
      expect((await by('reviewer', runId, granted)).body.status).toBe('waiting-approval');
      expect((await resolve(second, runId, 'gate', granted)).body.status).toBe('waiting-approval');
      expect((await by('reviewer', runId, { ...granted, voter: 'ada' })).body.status).toBe('waiting-approval');
      expect(await eventsOf(api(), runId, 'approval.granted')).toHaveLength(1);
      expectRefusal(await by('editor', runId, granted), 403, 'forbidden');
      expect((await by('owner', runId, granted)).body.status).toBe('running');
      const grants = await eventsOf(api(), runId, 'approval.granted');
      expect(grants.map(({ payload }) => payload.quorumProgress.granted)).toEqual([1, 2]);
      expect((await api().ended(runId)).status).toBe('completed');
    });

    it('that is rejected sends the run back over its edges, and asks again', async () => {
      const isNo = when('output.decision == "rejected"');
      const isYes = when('output.decision == "granted"');
      const { runId } = await atGate(
        { requiredRole: 'reviewer' },
        [node('revise'), node('publish')],
        [edge('gate', 'revise', isNo), edge('revise', 'gate'), edge('gate', 'publish', isYes)],
      );
      expect((await by('reviewer', runId, { decision: 'rejected', reason: 'not yet' })).status).toBe(200);
      await api().until(runId, keyOfInterrupt('gate:1'));
      const [rejected] = await eventsOf(api(), runId, 'approval.rejected');
      expect(rejected.payload).toEqual({ gateId: 'gate', principal: 'reviewer-of-alpha', reason: 'not yet' });
      await by('reviewer', runId, granted);
      const { status, nodeStates } = await api().ended(runId);
      expect({ status, publish: nodeStates.publish.status }).toEqual({ status: 'completed', publish: 'completed' });
    });

    it.each([
      [{ decision: 'rejected', reason: 'no' }, 'skipped', 'completed'],
      [{ decision: 'granted' }, 'completed', 'skipped'],
      [{ decision: 'overridden', reason: 'the house is on fire' }, 'completed', 'skipped'],
    ])('with %j takes an edge without a condition only if it opens', async (value, publish, notify) => {
      const { runId } = await atGate(
        { requiredRole: 'reviewer', override: { requiredRole: 'owner' } },
        [node('publish'), node('notify')],
        [edge('gate', 'publish'), edge('gate', 'notify', when('output.decision == "rejected"'))],
      );
      await by('owner', runId, value);
      const { status, nodeStates } = await api().ended(runId);
      expect(status).toBe('completed');
      expect([nodeStates.publish.status, nodeStates.notify.status]).toEqual([publish, notify]);
    });

    it('that is rejected and has nowhere to go fails its run', async () => {
      const { runId } = await atGate({ requiredRole: 'reviewer' });
      await by('reviewer', runId, { decision: 'rejected' });
      const { status, error } = await api().ended(runId);
      expect({ status, code: error.code }).toEqual({ status: 'failed', code: 'approval_rejected' });
    });

    describe('is overridden', () => {
      const gate = { requiredRole: 'reviewer', quorum: 2, override: { requiredRole: 'owner' } };

      it('as one vote, with a reason', async () => {
        const { runId } = await atGate(gate);
        expect((await by('owner', runId, overridden)).body.status).toBe('waiting-approval');
        const [event] = await eventsOf(api(), runId, 'approval.overridden');
        expect(event.payload).toEqual({ gateId: 'gate', principal: 'owner-of-alpha', reason: 'the house is on fire' });
        for (const again of [overridden, granted]) {
          expect((await by('owner', runId, again)).body.status).toBe('waiting-approval');
        }
        expect(await eventsOf(api(), runId, 'approval.')).toHaveLength(1);
        expect((await by('reviewer', runId, granted)).body.status).toBe('running');
        expect((await api().ended(runId)).nodeStates.gate.outputs).toEqual(granted);
      });

      it('alone, where the gate says so', async () => {
        const { runId } = await atGate({ ...gate, quorum: 5, overrideBypassesQuorum: true });
        expect((await by('owner', runId, overridden)).body.status).toBe('running');
        const { status, nodeStates } = await api().ended(runId);
        expect({ status, outputs: nodeStates.gate.outputs }).toEqual({
          status: 'completed',
          outputs: { decision: 'overridden' },
        });
      });

      it('by nobody below the role it takes, nor without a reason, nor where there is no override', async () => {
        const { runId } = await atGate({ ...gate, overrideBypassesQuorum: true });
        const denied = await by('reviewer', runId, overridden);
        expectRefusal(denied, 403, 'forbidden');
        expect(denied.body.details).toEqual({ roleRequired: 'owner' });
        for (const reason of [undefined, '', '   ']) {
          expectRefusal(await by('owner', runId, { decision: 'overridden', reason }), 400, 'INVALID_RESUME_VALUE');
        }
        const plain = await atGate({ requiredRole: 'reviewer' });
        expectRefusal(await by('owner', plain.runId, overridden), 403, 'forbidden');
        for (const waiting of [runId, plain.runId]) {
          expect((await api().get(`/v1/runs/${waiting}`)).body.status).toBe('waiting-approval');
        }
      });
    });

    it('that nobody decided in time is rejected, and routed like any no', async () => {
      // Nobody looks whether it waits: on a busy machine its time is over before.
      const gate = governanceGate('gate', { requiredRole: 'reviewer', timeoutSec: 0.15 });
      const isTimeout = when('output.decision == "rejected" && output.reason == "timeout"');
      const definition = workflow([gate, node('revise')], [edge('gate', 'revise', isTimeout)]);
      const runId = await api().run(await register(api(), definition));
      const { status, nodeStates } = await api().ended(runId);
      expect({ status, revise: nodeStates.revise.status }).toEqual({ status: 'completed', revise: 'completed' });
      const [resolved] = await eventsOf(api(), runId, 'interrupt.resolved');
      expect(resolved.payload).toMatchObject({ outcome: 'rejected', reason: 'timeout' });
      expectRefusal(await by('reviewer', runId, granted), 409, 'interrupt_already_resolved');
      expect(await eventsOf(api(), runId, 'approval.')).toEqual([]);
    });

    it.each([
      [{ action: 'accept' }],
      [{ decision: 'approved' }],
      [{ decision: 'granted', reason: 7 }],
      [{}],
      [null],
      ['granted'],
    ])('does not understand %j, and stays closed', async (value) => {
      const { runId } = await atGate({ requiredRole: 'reviewer' });
      const before = await api().events(runId);
      expectRefusal(await by('reviewer', runId, value), 400, 'INVALID_RESUME_VALUE');
      expect(await api().events(runId)).toEqual(before);
    });

    it('about one artifact takes its hash', async () => {
      const artifactHash = 'c'.repeat(64);
      const { runId } = await atGate({ requiredRole: 'reviewer', artifactHash });
      expectRefusal(await by('reviewer', runId, granted), 400, 'INVALID_RESUME_VALUE');
      expectRefusal(await by('reviewer', runId, { ...granted, artifactHash: 'd'.repeat(64) }), 409, 'conflict');
      expect((await by('reviewer', runId, { ...granted, artifactHash })).status).toBe(200);
    });

    it.each([
      ['nobody', {}],
      ['a role that does not exist', { requiredRole: 'admin' }],
      ['a scope that does not exist', { requiredScope: 'deploy:promote' }],
      ['an override for nobody', { requiredRole: 'owner', override: {} }],
      [
        'an override that leaves no trace',
        { requiredRole: 'owner', override: { requiredRole: 'owner', audited: false } },
      ],
      ['a quorum of none', { requiredRole: 'owner', quorum: 0 }],
      ['no time at all', { requiredRole: 'owner', timeoutSec: 0 }],
    ])('for %s is not registered', async (_what, config) => {
      const answer = await api().post(WORKFLOWS, workflow([governanceGate('gate', config as never)]));
      expectRefusal(answer, 422, 'validation_error');
    });

    it('is held against its rules by suites, through the seams', async () => {
      const seam = '/v1/host/sample/governance/approval-gate';
      const stranger = { scenario: 'unauthorized-grant', principal: 'somebody' };
      expect((await api().post(seam, stranger)).body).toEqual({ released: false });
      const { body } = await api().post(seam, { scenario: 'override', principal: 'olga', reason: 'fire' });
      expect(body.event).toMatchObject({ type: 'approval.overridden', payload: { principal: 'olga', reason: 'fire' } });
      expect(Object.keys(body.event.payload).sort()).toEqual(['gateId', 'principal', 'reason']);
      const decide = { principal: 'conformance-unseeded-principal', action: 'runs:cancel', resource: 'run' };
      const { body: decision } = await api().post('/v1/host/sample/authorization/decide', decide);
      expect(decision.allowed).toBe(false);
      for (const path of [seam, '/v1/host/sample/authorization/decide']) {
        expectRefusal(await host().anonymous.post(path, decide), 401, 'unauthenticated');
      }
    });

    it('is known to discovery by the roles that it asks for', async () => {
      const { authorization } = (await host().anonymous.get('/.well-known/openwop')).body;
      expect(authorization).toMatchObject({ supported: true, failClosed: true });
      expect(authorization.roles.map(({ role }: { role: string }) => role)).toEqual([
        'viewer',
        'editor',
        'reviewer',
        'owner',
      ]);
    });
  },
  { apiKeys: keyRecords([SCOPED, SAME]) },
);
