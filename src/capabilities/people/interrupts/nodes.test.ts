import { describe, expect, it } from 'vitest';
import { node } from '../../../../test/support/definitions.ts';
import { configProblems, outputsOf, run, typeOf } from '../../../../test/support/node-context.ts';
import type { NodeContext, Outcome } from '../../../runtime/node-type.ts';

const answered = (value: unknown, given: Partial<NodeContext> = {}): Partial<NodeContext> => ({
  ...given,
  answer: { value },
});

function asked(typeId: string, given: Partial<NodeContext> = {}) {
  const outcome = run(typeId, given) as Outcome;
  if (!('interrupt' in outcome)) throw new Error(`asked nothing: ${JSON.stringify(outcome)}`);
  return outcome.interrupt;
}

describe('an approval gate', () => {
  const gate = 'core.approvalGate';

  it('asks for what the protocol wants to know, whatever the config leaves out', () => {
    expect(asked(gate)).toEqual({
      kind: 'approval',
      data: { artifactId: 'a', artifactType: 'approval', title: 'a', actions: ['accept', 'reject'] },
    });
  });

  it('shows what the definition puts on its ports, and nothing else of the run', () => {
    const given = { declared: { text: 'draft' }, inputs: { text: 'draft', secret: 'of the run' } };
    expect(asked(gate, given).data.artifactData).toEqual({ text: 'draft' });
    expect(asked(gate, { inputs: { secret: 'of the run' } }).data).not.toHaveProperty('artifactData');
  });

  it('says who may approve, how many must, how long it waits and what kind of thing it is', () => {
    const config = {
      title: 'Publish?',
      description: 'The draft',
      artifactType: 'report',
      requiredApprovals: 2,
      rejectionPolicy: 'majority',
      approversList: ['ada'],
      approverGroupRefs: ['writers'],
      approverRoleRefs: ['editor'],
      audience: { subjects: ['bob'] },
    };
    const request = asked(gate, { config: { ...config, timeoutMs: 1_000 } });
    expect(request.timeoutMs).toBe(1_000);
    expect(request.data).toMatchObject(config);
    expect(request.data).not.toHaveProperty('timeoutMs');
    const typed = { node: node('a', gate, { artifactType: 'note' }) };
    expect(asked(gate, typed).data.artifactType).toBe('note');
  });

  it('shows nothing of its config that the protocol does not know', () => {
    const config = { gateId: 'forged', artifactId: 7, note: 'for the author' };
    expect(asked(gate, { config }).data).toEqual(asked(gate).data);
  });

  it('is done when it is accepted, with what was decided and by whom', () => {
    const answer = { action: 'edit-accept', editedArtifactData: { text: 'better' }, decidedBy: 'ada' };
    expect(outputsOf(gate, answered(answer))).toEqual(answer);
  });

  it.each([
    ['reject', 'approval_rejected', 'It was rejected.'],
    ['timeout', 'approval_timeout', 'Nobody approved in time.'],
  ])('fails on %s, for good, unless an edge is meant for it', (action, code, message) => {
    expect(run(gate, answered({ action, decidedBy: 'ada' }))).toEqual({ failed: { code, message, retryable: false } });
    expect(outputsOf(gate, answered({ action, feedback: 'no' }, { routes: () => true }))).toEqual({
      action,
      feedback: 'no',
    });
  });

  it('asks again when it is to be refined, and says what with, unless its edges say where that happens', () => {
    const refineFeedback = { scope: 'whole', text: 'shorter' };
    const answer = { action: 'refine', refineFeedback, decidedBy: 'ada' };
    const outcome = run(gate, answered(answer)) as { interrupt: { data: object } };
    expect(outcome.interrupt.data).toMatchObject({ title: 'a', refineFeedback });
    expect(outputsOf(gate, answered(answer, { routes: () => true }))).toEqual(answer);
  });

  it.each([
    [{ actions: [] }, '.actions'],
    [{ actions: ['accept', 'accept'] }, '.actions'],
    [{ actions: ['edit'] }, '.actions.0'],
    [{ requiredApprovals: 0 }, '.requiredApprovals'],
    [{ rejectionPolicy: 'any' }, '.rejectionPolicy'],
    [{ timeoutMs: 0 }, '.timeoutMs'],
    [{ approversList: [''] }, '.approversList.0'],
    [{ title: '' }, '.title'],
    [{ audience: { people: ['ada'] } }, '.audience.people'],
  ])('does not take the config %j', (config, path) => {
    expect(configProblems(gate, config)).toContain(path);
  });
});

describe('a clarification gate', () => {
  const gate = 'core.clarificationGate';
  const questions = [{ id: 'q', question: 'Why?', schema: { type: 'string' } }];

  it('asks its questions, and is done with the answers', () => {
    expect(asked(gate, { config: { questions, contextType: 'order', timeoutMs: 5 } })).toEqual({
      kind: 'clarification',
      data: { questions, contextType: 'order' },
      timeoutMs: 5,
    });
    expect(outputsOf(gate, answered({ answers: { q: 'because' } }))).toEqual({ answers: { q: 'because' } });
  });

  it.each([
    [{}, '.questions'],
    [{ questions: [] }, '.questions'],
    [{ questions: [{ id: '', question: 'Why?' }] }, '.questions.0.id'],
    [{ questions: [{ id: 'q', question: '' }] }, '.questions.0.question'],
    [{ questions: [{ id: 'q', question: 'Why?', schema: { type: 'words' } }] }, '.questions.0.schema'],
  ])('does not take the config %j', (config, path) => {
    expect(configProblems(gate, config)).toContain(path);
  });
});

describe('an interrupt', () => {
  const type = 'core.interrupt';
  const config = {
    kind: 'external-event',
    data: { eventType: 'e', correlation: { id: 1 } },
    resumeSchema: { type: 'object' },
    timeoutMs: 9,
  };

  it('asks for exactly what its config says', () => {
    expect(asked(type, { config })).toEqual(config);
  });

  it('gives an answer that is an object as its outputs, and any other as one output', () => {
    expect(outputsOf(type, answered({ id: 1, more: [2] }))).toEqual({ id: 1, more: [2] });
    expect(outputsOf(type, answered([1]))).toEqual({ output: [1] });
    expect(outputsOf(type, answered(null))).toEqual({ output: null });
  });

  it('that asks for approval fails closed like a gate, and asks again when it is to be refined', () => {
    const approval = {
      kind: 'approval',
      data: { artifactId: 'a', artifactType: 't', title: 'A', actions: ['accept'] },
    };
    const given = (action: string, routes = false) =>
      run(type, answered({ action }, { config: approval, routes: () => routes }));
    expect(given('reject')).toMatchObject({ failed: { code: 'approval_rejected' } });
    expect(given('timeout')).toMatchObject({ failed: { code: 'approval_timeout' } });
    expect(given('reject', true)).toEqual({ done: { outputs: { action: 'reject' } } });
    expect(given('refine')).toEqual({ interrupt: approval });
    expect(given('accept')).toEqual({ done: { outputs: { action: 'accept' } } });
  });

  it.each([
    [{ ...config, kind: 'question' }, '.kind'],
    [{ ...config, data: { eventType: 'e' } }, '.data.correlation'],
    [{ ...config, data: { eventType: '', correlation: {} } }, '.data.eventType'],
    [{ ...config, data: { ...config.data, more: 1 } }, '.data.more'],
    [{ kind: 'custom', data: {} }, '.data.customKind'],
    [{ kind: 'low-confidence', data: { agentId: 'abc', threshold: 2, observed: 0 } }, '.data.threshold'],
    [
      { kind: 'clarification', data: { questions: [{ id: 'q', question: '?', schema: { type: 1 } }] } },
      '.data.questions.0.schema',
    ],
    [{ ...config, resumeSchema: { type: 'words' } }, '.resumeSchema'],
    [{ ...config, timeoutMs: -1 }, '.timeoutMs'],
  ])('does not take the config %j', (wrong, path) => {
    expect(configProblems(type, wrong)).toContain(path);
  });

  it('names only what is wrong with the kind that was meant', () => {
    expect(configProblems(type, { ...config, data: { eventType: 'e' } })).toEqual(['.data.correlation']);
  });

  it.each(['conversation.start', 'conversation.exchange', 'conversation.close'])(
    'needs a capability for %s',
    (kind) => {
      expect(typeOf(type).check!({ kind, data: { conversationId: 'c' } })).toMatchObject([
        { path: '.kind', requiredCapability: 'conversationPrimitive' },
      ]);
    },
  );
});
