import { describe, expect, it } from 'vitest';
import { edge, node, workflow } from '../../../test/support/definitions.ts';
import { isRefusal } from '../../protocol/errors.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
import { cancelRun, pauseRun } from '../run/commands.ts';
import { dueAt, next } from '../run/next.ts';
import { statusOf } from '../run/run.ts';
import { NOW, TestRun } from '../testing.ts';
import { answerChecks, expireInterrupt, type InterruptRequest, openInterrupt, resolveInterrupt } from './interrupts.ts';
import type { Resolver } from './question.ts';

const SOMEBODY: Resolver = {
  principal: 'ada',
  mayNameVoters: true,
  hasScope: () => false,
  hasRole: () => false,
  hasGroup: () => false,
};

const CUSTOM: InterruptRequest = { kind: 'custom', data: { customKind: 'c' } };
const QUESTION: InterruptRequest = {
  kind: 'clarification',
  data: { questions: [{ id: 'q', question: 'Why?', schema: { type: 'string' } }] },
};
const APPROVAL: InterruptRequest = {
  kind: 'approval',
  data: { artifactId: 'a', artifactType: 'text', title: 'Approve', actions: ['accept', 'edit-accept'] },
};
const GATE: InterruptRequest = { ...APPROVAL, data: { ...APPROVAL.data, gateId: 'n', requiredRole: 'owner' } };
const EVENT: InterruptRequest = { kind: 'external-event', data: { eventType: 'e', correlation: { id: 1 } } };
const UNSURE: InterruptRequest = {
  kind: 'low-confidence',
  data: { agentId: 'abc', threshold: 0.7, observed: 0.2, decision: 'left' },
};

function asking(request: InterruptRequest, id = 'n'): TestRun {
  return new TestRun(workflow([node(id)])).settle().suspend(id, 'int-1', request);
}

function answer(story: TestRun, value: unknown, nodeId = 'n'): string {
  const decision = resolveInterrupt(story.run, nodeId, value, SOMEBODY);
  if (isRefusal(decision)) return decision.refused;
  if ('refusal' in decision) return decision.refusal.refused;
  story.record(...decision);
  return 'taken';
}

const why = (story: TestRun, nodeId = 'n'): unknown => {
  const open = openInterrupt(story.run, nodeId);
  return isRefusal(open) ? open.refused : open.interruptId;
};

describe('a suspended node', () => {
  it.each([
    [CUSTOM, 'waiting-input'],
    [QUESTION, 'waiting-input'],
    [APPROVAL, 'waiting-approval'],
    [UNSURE, 'waiting-approval'],
    [EVENT, 'waiting-external'],
  ] as const)('makes its run wait with the status of the kind: %j', (request, status) => {
    const story = asking(request);
    expect(story.status('n')).toBe('suspended');
    expect(statusOf(story.run)).toBe(status);
    expect(story.last('node.suspended')).toMatchObject({ nodeId: 'n', interruptId: 'int-1', kind: request.kind });
  });

  it('records exactly the events that the protocol defines', () => {
    const story = asking({ ...EVENT, resumeSchema: { type: 'object' }, timeoutMs: 50 });
    expect(story.last('interrupt.requested')).toEqual({
      kind: 'external-event',
      key: 'n:0',
      data: EVENT.data,
      resumeSchema: { type: 'object' },
      timeoutMs: 50,
    });
    expect(Object.keys(asking(CUSTOM).last('interrupt.requested')!)).toEqual(['kind', 'key', 'data']);
  });

  it('has a new key for each interrupt, of bounded length', () => {
    const story = asking(CUSTOM);
    answer(story, 1);
    expect(story.suspend('n', 'int-2', CUSTOM).last('interrupt.requested')!.key).toBe('n:1');
    const { key } = asking(CUSTOM, 'x'.repeat(400)).last('interrupt.requested')!;
    expect(key).toBe('node-0:0');
  });

  it.each([
    [CUSTOM, []],
    [EVENT, []],
    [UNSURE, []],
    [GATE, []],
    [APPROVAL, ['approval.requested n']],
    [QUESTION, ['clarification.requested n']],
  ] as const)('is also announced by the older events, if any: %j', (request, companions) => {
    expect(asking(request).eventLabels.slice(-companions.length - 1)).toEqual(['interrupt.requested n', ...companions]);
  });

  it('is announced with the older name of edit-accept', () => {
    expect(asking(APPROVAL).last('approval.requested')!.actions).toEqual(['accept', 'edit']);
  });

  it('reports its confidence', () => {
    const reason = { reason: 'low-confidence', agentId: 'abc', threshold: 0.7, observed: 0.2 };
    expect(asking(UNSURE).last('node.suspended')).toMatchObject(reason);
    expect(asking(CUSTOM).last('node.suspended')).not.toHaveProperty('reason');
  });

  it('does not make the run wait while other nodes run', () => {
    const story = new TestRun(workflow([node('n'), node('busy')])).settle().suspend('n', 'int-1', CUSTOM);
    expect(statusOf(story.run)).toBe('running');
    expect(statusOf(story.complete('busy').settle().run)).toBe('waiting-input');
  });

  it('is shown by the run in order of suspension', () => {
    const story = new TestRun(workflow([node('a'), node('b')])).settle();
    story.suspend('b', 'int-1', EVENT).suspend('a', 'int-2', APPROVAL);
    expect(statusOf(story.run)).toBe('waiting-external');
    answer(story, { id: 1 }, 'b');
    story.complete('b').settle();
    expect(statusOf(story.run)).toBe('waiting-approval');
  });
});

describe('an answer', () => {
  it('resumes the node with the answer', () => {
    const story = asking(CUSTOM);
    expect(answer(story, { any: [1] })).toBe('taken');
    expect(story.eventLabels.slice(-2)).toEqual(['interrupt.resolved n', 'node.resumed n']);
    expect(story.last('interrupt.resolved')).toEqual({
      nodeId: 'n',
      interruptId: 'int-1',
      kind: 'custom',
      resumeValue: { any: [1] },
      resolvedBy: 'ada',
    });
    expect(story.run.nodes[0]).toMatchObject({ status: 'running', answer: { value: { any: [1] } } });
    expect(statusOf(story.run)).toBe('running');
  });

  it('is accepted only once', () => {
    const story = asking(CUSTOM);
    answer(story, 1);
    expect(answer(story, 2)).toBe('interrupt_already_resolved');
    story.complete('n').settle();
    expect(answer(story, 3)).toBe('interrupt_already_resolved');
  });

  it('to an earlier interrupt is not accepted for a later one', () => {
    const story = asking(CUSTOM);
    answer(story, 1);
    story.suspend('n', 'int-2', CUSTOM);
    expect(story.run.nodes[0]!.answer).toBeUndefined();
    expect(why(story)).toBe('int-2');
    expect(openInterrupt(story.run, 'n', 'int-1')).toMatchObject({ refused: 'interrupt_already_resolved' });
    expect(openInterrupt(story.run, 'n', 'int-2')).toMatchObject({ interruptId: 'int-2' });
  });

  it.each([
    [QUESTION, undefined],
    [QUESTION, { answers: {} }],
    [QUESTION, { answers: [{ id: 'q' }] }],
    [QUESTION, { answers: [['q', 'because']] }],
  ] as const)('must be valid: %j is not answered by %j', (request, value) => {
    const story = asking(request);
    expect(answer(story, value)).toBe('validation_error');
    expect(why(story)).toBe('int-1');
  });

  it('must match the schemas of the interrupt and of its questions, each with a refusal of its own', () => {
    const checksOf = (request: InterruptRequest, value: unknown) => {
      const open = openInterrupt(asking(request).run, 'n');
      if (isRefusal(open)) throw new Error(open.message);
      return answerChecks(open, value).map(({ refusal, ...check }) => ({ ...check, code: refusal('wrong').refused }));
    };
    const schema = { type: 'string' };
    expect(checksOf({ ...CUSTOM, resumeSchema: schema }, 7)).toEqual([{ schema, value: 7, code: 'validation_error' }]);
    expect(checksOf({ ...GATE, resumeSchema: schema }, 7)).toMatchObject([{ code: 'INVALID_RESUME_VALUE' }]);
    const asked = { schema, value: 7, code: 'validation_error' };
    expect(checksOf(QUESTION, { answers: { q: 7 } })).toEqual([asked]);
    expect(checksOf(QUESTION, { answers: [{ id: 'q', answer: 7 }] })).toEqual([asked]);
    expect(checksOf(QUESTION, { answers: {} })).toEqual([]);
    expect(checksOf(CUSTOM, 7)).toEqual([]);
  });

  it.each([
    [{ id: 1 }, 'taken'],
    [{ id: 1, more: true }, 'taken'],
    [{ id: '1' }, 'correlation_mismatch'],
    [{}, 'correlation_mismatch'],
    [[1], 'correlation_mismatch'],
    [null, 'correlation_mismatch'],
  ])('that is an event must match the correlation: %j is %s', (value, outcome) => {
    expect(answer(asking(EVENT), value)).toBe(outcome);
  });

  it('to questions is stored as a map, even if sent as a list', () => {
    const story = asking(QUESTION);
    answer(story, { answers: [{ id: 'q', answer: 'because' }] });
    expect(story.last('clarification.resolved')).toEqual({
      nodeId: 'n',
      answers: { q: 'because' },
      answeredBy: 'ada',
    });
    expect(story.last('interrupt.resolved')!.resumeValue).toEqual({ answers: { q: 'because' } });
  });
});

describe('there is no open interrupt', () => {
  it('at nodes that do not exist, are not suspended, or are named like inherited members', () => {
    const story = new TestRun(workflow([node('n'), node('later')], [edge('n', 'later')])).settle();
    for (const nodeId of ['n', 'later', 'nowhere', 'constructor'])
      expect(why(story, nodeId)).toBe('interrupt_not_found');
  });

  it('after the run was cancelled or failed', () => {
    const story = asking(CUSTOM);
    story.record(...(cancelRun(story.run, {}) as NewEvent[]));
    expect(answer(story, 1)).toBe('interrupt_gone');
    const two = new TestRun(workflow([node('n'), node('f')])).settle().suspend('n', 'int-1', CUSTOM);
    two.fail('f', { retryable: false }).settle();
    expect(answer(two, 1)).toBe('interrupt_gone');
  });

  it('after it expired, also at a node that was answered in an earlier iteration', () => {
    const definition = workflow(
      [node('n'), node('g', 'core.approvalGate'), node('end')],
      [
        edge('n', 'g'),
        edge('g', 'n', { condition: { type: 'expression', expression: 'output.again == true' } }),
        edge('g', 'end'),
      ],
    );
    const story = new TestRun(definition).settle().suspend('n', 'int-1', CUSTOM);
    answer(story, 1);
    story.complete('n').settle().complete('g', { again: true }).settle();
    expect(why(story)).toBe('interrupt_already_resolved');
    story.suspend('n', 'int-2', CUSTOM);
    story.record(...expireInterrupt(story.run, 'n'));
    expect(why(story)).toBe('interrupt_expired');
  });
});

describe('the timeout', () => {
  it('is the one in the request', () => {
    const story = asking({ ...CUSTOM, timeoutMs: 50 });
    expect(dueAt(story.run)).toBe(NOW + 50);
    expect(next(story.run, NOW + 49, 8).events).toEqual([]);
    expect(next(story.run, NOW + 50, 8).events).toHaveLength(1);
  });

  it('rejects an approval', () => {
    const story = asking({ ...APPROVAL, timeoutMs: 50 });
    story.now += 50;
    story.step();
    expect(story.last('approval.received')).toEqual({ nodeId: 'n', action: 'timeout' });
    expect(story.last('interrupt.resolved')).toEqual({
      nodeId: 'n',
      interruptId: 'int-1',
      kind: 'approval',
      resumeValue: { action: 'timeout' },
      outcome: 'rejected',
      reason: 'timeout',
    });
    expect(answer(story, { action: 'accept' })).toBe('interrupt_already_resolved');
  });

  it('rejects a gate, without a principal', () => {
    const story = asking({ ...GATE, timeoutMs: 50 });
    story.now += 50;
    story.step();
    expect(story.eventLabels).not.toContain('approval.rejected n');
    expect(story.last('interrupt.resolved')).toMatchObject({
      resumeValue: { decision: 'rejected', reason: 'timeout' },
      outcome: 'rejected',
      reason: 'timeout',
    });
    expect(story.last('interrupt.resolved')).not.toHaveProperty('resolvedBy');
  });

  it.each([[CUSTOM], [QUESTION], [EVENT], [UNSURE]])(
    'fails whoever asked anything else when it is up: %j',
    (request) => {
      const story = asking({ ...request, timeoutMs: 50 });
      story.now += 50;
      story.settle();
      expect(story.last('node.failed')!.error).toMatchObject({ code: 'interrupt_expired', retryable: false });
      expect(story.eventLabels).not.toContain('interrupt.resolved n');
      expect(story.run.ended).toBe('failed');
    },
  );

  it('applies to each interrupt separately', () => {
    const story = new TestRun(workflow([node('a'), node('b')])).settle();
    story.suspend('a', 'int-1', { ...APPROVAL, timeoutMs: 50 }).suspend('b', 'int-2', { ...APPROVAL, timeoutMs: 90 });
    story.now += 50;
    story.settle();
    expect([why(story, 'a'), why(story, 'b')]).toEqual(['interrupt_already_resolved', 'int-2']);
    expect(dueAt(story.run)).toBe(NOW + 90);
  });

  it('does not expire while the run is paused', () => {
    const story = new TestRun(workflow([node('n'), node('busy')])).settle();
    story.suspend('n', 'int-1', { ...APPROVAL, timeoutMs: 50 });
    story.record(...(pauseRun(story.run, { drainPolicy: 'immediate' }) as NewEvent[]));
    expect(next(story.run, NOW + 100, 8).events).toEqual([]);
  });

  it('of an attempt does not apply while the node is suspended', () => {
    const story = new TestRun(workflow([node('n', 'core.noop', { settings: { timeoutMs: 50 } })])).settle();
    story.suspend('n', 'int-1', CUSTOM);
    story.now += 10_000;
    expect(story.step().events).toEqual([]);
    expect(why(story)).toBe('int-1');
  });
});
