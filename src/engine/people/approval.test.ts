import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../../test/support/definitions.ts';
import { isRefusal } from '../../protocol/errors.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import { TestRun } from '../testing.ts';
import { APPROVAL_ACTIONS } from './approval.ts';
import { resolveInterrupt } from './interrupts.ts';
import type { Resolver } from './question.ts';

const program = (principal = 'robot'): Resolver => ({
  principal,
  mayNameVoters: true,
  hasScope: () => false,
  hasRole: () => false,
  hasGroup: () => false,
});
const person = (principal: string): Resolver => ({ ...program(principal), mayNameVoters: false });
/** Has a role and is in a group. */
const approver: Resolver = {
  ...person('zoe'),
  hasRole: (role) => role === 'reviewer',
  hasGroup: (group) => group === 'finance',
};

/** A run that waits for an approval; `vote` answers it and returns the outcome. */
function asking(data: JsonObject = {}) {
  const story = new TestRun(workflow([node('gate')])).settle();
  const actions = [...APPROVAL_ACTIONS];
  const shown = { artifactId: 'a', artifactType: 'text', title: 'Approve', actions, ...data };
  story.suspend('gate', 'int-1', { kind: 'approval', data: shown });
  return {
    story,
    vote(value: unknown, by: Resolver = program()): string {
      const decision = resolveInterrupt(story.run, 'gate', value, by);
      if (isRefusal(decision)) return decision.refused;
      if (!Array.isArray(decision)) throw new Error('an approval refuses without a trace');
      story.record(...decision);
      return story.status('gate') === 'suspended' ? 'open' : 'decided';
    },
  };
}

const accept = (voter?: string): JsonObject => ({ action: 'accept', ...(voter ? { voter } : {}) });
const reject = (voter?: string): JsonObject => ({ action: 'reject', ...(voter ? { voter } : {}) });

describe('an approval by one', () => {
  it.each([
    [{ action: 'accept' }],
    [{ action: 'reject', feedback: 'not now' }],
    [{ action: 'refine', refineFeedback: { scope: 'section', sectionPath: '$.intro', tags: ['long'] } }],
    [{ action: 'edit-accept', editedArtifactData: { text: 'better' } }],
  ])('is decided by %j, and records by whom', (value) => {
    const { story, vote } = asking();
    expect(vote(value)).toBe('decided');
    expect(story.eventLabels.slice(-3)).toEqual([
      'approval.received gate',
      'interrupt.resolved gate',
      'node.resumed gate',
    ]);
    expect(story.last('approval.received')).toMatchObject({ nodeId: 'gate', action: value.action, decidedBy: 'robot' });
    expect(story.last('interrupt.resolved')).toEqual({
      nodeId: 'gate',
      interruptId: 'int-1',
      kind: 'approval',
      resumeValue: { ...value, decidedBy: 'robot' },
      resolvedBy: 'robot',
    });
    expect(story.last('node.resumed')!.resumeValue).toEqual({ ...value, decidedBy: 'robot' });
  });

  it('records only the members that belong to the action', () => {
    const { story, vote } = asking();
    vote({ action: 'accept', feedback: 'fine', refineFeedback: 'no shape', editedArtifactData: 1 });
    expect(story.last('approval.received')).toEqual({
      nodeId: 'gate',
      action: 'accept',
      decidedBy: 'robot',
      comment: 'fine',
    });
  });

  it('ignores what an answer claims about who decides', () => {
    const { story, vote } = asking();
    vote({ action: 'accept', decidedBy: 'the-boss' });
    expect(story.last('approval.received')!.decidedBy).toBe('robot');
    expect(story.last('interrupt.resolved')!.resumeValue).toEqual({ action: 'accept', decidedBy: 'robot' });
  });

  it.each(APPROVAL_ACTIONS)('refuses %s if the approval does not allow it', (action) => {
    const others = APPROVAL_ACTIONS.filter((other) => other !== action);
    const { story, vote } = asking({ actions: others });
    const before = story.run.sequence;
    expect(vote({ action, question: '?', editedArtifactData: 1, refineFeedback: { scope: 'whole' } })).toBe(
      'validation_error',
    );
    expect(story.run.sequence).toBe(before);
  });

  it.each([
    [null],
    ['accept'],
    [['accept']],
    [{}],
    [{ action: 'timeout' }],
    [{ action: 'ACCEPT' }],
    [{ action: ['accept'] }],
    [{ action: 'ask' }],
    [{ action: 'ask', question: 7 }],
    [{ action: 'edit-accept' }],
    [{ action: 'refine' }],
    [{ action: 'refine', refineFeedback: 'shorter' }],
    [{ action: 'refine', refineFeedback: {} }],
    [{ action: 'refine', refineFeedback: { scope: 'part' } }],
    [{ action: 'refine', refineFeedback: { scope: 'whole', text: 7 } }],
    [{ action: 'refine', refineFeedback: { scope: 'whole', tags: 'long' } }],
    [{ action: 'refine', refineFeedback: { scope: 'items', itemIds: [1] } }],
    [{ action: 'refine', refineFeedback: { scope: 'section', sectionPath: null } }],
    [{ decision: 'timeout' }],
    [{ decision: 'cancelled' }],
    [{ decision: 'granted' }],
  ])('refuses %j', (value) => {
    expect(asking().vote(value)).toBe('validation_error');
  });

  it('accepts null as an edited artifact', () => {
    expect(asking().vote({ action: 'edit-accept', editedArtifactData: null })).toBe('decided');
  });

  it.each([
    [{ decision: 'approved' }, { action: 'accept' }],
    [{ decision: 'rejected' }, { action: 'reject' }],
    [
      { decision: 'rejected', feedback: '' },
      { action: 'reject', feedback: '' },
    ],
    [
      { decision: 'rejected', feedback: 'shorter' },
      { action: 'refine', feedback: 'shorter', refineFeedback: { scope: 'whole', text: 'shorter' } },
    ],
    [
      { decision: 'rejected', action: 'accept' },
      { action: 'accept', decision: 'rejected' },
    ],
  ])('converts the older %j to %j', (value, meant) => {
    const { story, vote } = asking();
    expect(vote(value)).toBe('decided');
    expect(story.last('interrupt.resolved')!.resumeValue).toEqual({ ...meant, decidedBy: 'robot' });
  });

  it('prefers the newer format if both are present', () => {
    const { story, vote } = asking();
    const refineFeedback = { scope: 'items', itemIds: ['3'] };
    vote({ action: 'refine', feedback: 'the third', refineFeedback });
    expect(story.last('approval.received')).toMatchObject({ comment: 'the third', refineFeedback });
  });
});

describe('asking back', () => {
  it('leaves the approval open and records all questions', () => {
    const { story, vote } = asking();
    expect(vote({ action: 'ask', question: 'Who wrote it?' })).toBe('open');
    expect(vote({ action: 'ask', question: 'When?', voter: 'ada' })).toBe('open');
    expect(story.run.variables['_askExchanges:gate']).toEqual([
      { question: 'Who wrote it?', askedBy: 'robot' },
      { question: 'When?', askedBy: 'robot#ada' },
    ]);
    expect(story.eventLabels).not.toContain('approval.received gate');
    expect(vote({ action: 'accept' })).toBe('decided');
  });

  it('has an end, after which the approval can still be decided', () => {
    const { story, vote } = asking();
    for (let count = 0; count < 50; count++) expect(vote({ action: 'ask', question: `${count}?` })).toBe('open');
    const { sequence } = story.run;
    expect(vote({ action: 'ask', question: 'One more?' })).toBe('conflict');
    expect(vote({ action: 'ask', question: 'x'.repeat(2_001) })).toBe('validation_error');
    expect(story.run.sequence).toBe(sequence);
    expect(vote({ action: 'accept' })).toBe('decided');
  });

  it('is not a vote', () => {
    const { vote } = asking({ requiredApprovals: 2 });
    vote({ action: 'ask', question: '?', voter: 'ada' });
    expect(vote(accept('bob'))).toBe('open');
    expect(vote(accept('ada'))).toBe('decided');
  });
});

describe('a quorum', () => {
  it('needs that many different voters to accept', () => {
    const { story, vote } = asking({ requiredApprovals: 3 });
    expect([vote(accept('ada')), vote(accept('bob')), vote(accept('cy'))]).toEqual(['open', 'open', 'decided']);
    expect(story.last('approval.received')!.decidedBy).toBe('robot#cy');
    expect(story.events.filter(({ type }) => type === 'approval.received')).toHaveLength(3);
  });

  it('counts the last vote of each voter', () => {
    const { vote } = asking({ requiredApprovals: 2, rejectionPolicy: 'majority' });
    expect([vote(accept('ada')), vote(accept('ada')), vote(accept('ada'))]).toEqual(['open', 'open', 'open']);
    expect(vote(reject('ada'))).toBe('open');
    expect(vote(accept('bob'))).toBe('open');
    expect(vote(accept('ada'))).toBe('decided');
  });

  it.each([accept('ada'), reject('ada'), { action: 'edit-accept', editedArtifactData: 1, voter: 'ada' }])(
    'records %j once, however often it is cast',
    (value) => {
      const { story, vote } = asking({ requiredApprovals: 3, rejectionPolicy: 'majority' });
      vote(accept('bob'));
      expect(vote(value)).toBe('open');
      const before = story.run.sequence;
      expect([vote(value), vote(value)]).toEqual(['open', 'open']);
      expect(story.run.sequence).toBe(before);
    },
  );

  it('counts edits as acceptance', () => {
    const { story, vote } = asking({ requiredApprovals: 2 });
    vote({ action: 'edit-accept', editedArtifactData: 1, voter: 'ada' });
    expect(vote(accept('bob'))).toBe('decided');
    expect(story.last('interrupt.resolved')!.resumeValue).toMatchObject({ action: 'accept' });
  });

  it.each([1, 2, 3, 4, 5, 6, 7])('of %i is rejected by a majority, and not before', (requiredApprovals) => {
    const { vote } = asking({ requiredApprovals, rejectionPolicy: 'majority' });
    const needed = Math.floor(requiredApprovals / 2) + 1;
    const votes = Array.from({ length: needed }, (_, index) => vote(reject(`voter-${index}`)));
    expect(votes).toEqual([...Array.from({ length: needed - 1 }, () => 'open'), 'decided']);
  });

  it.each([{}, { rejectionPolicy: 'single-veto' }])('with %j is rejected by anybody', (policy) => {
    const { story, vote } = asking({ requiredApprovals: 3, ...policy });
    vote(accept('ada'));
    expect(vote(reject('bob'))).toBe('decided');
    expect(story.last('interrupt.resolved')!.resumeValue).toMatchObject({ action: 'reject' });
  });

  it('is sent back by any voter, and starts over', () => {
    const { story, vote } = asking({ requiredApprovals: 2 });
    vote(accept('ada'));
    expect(vote({ action: 'refine', refineFeedback: { scope: 'whole', text: 'x' }, voter: 'bob' })).toBe('decided');
    story.suspend('gate', 'int-2', {
      kind: 'approval',
      data: { artifactId: 'a', artifactType: 't', title: 't', actions: ['accept'], requiredApprovals: 2 },
    });
    expect([vote(accept('ada')), vote(accept('bob'))]).toEqual(['open', 'decided']);
  });
});

describe('the voter', () => {
  it('is a program with its label, so that programs cannot vote for each other', () => {
    const { story, vote } = asking({ requiredApprovals: 4 });
    vote(accept('ada'), program('one'));
    vote(accept('ada'), program('two'));
    vote(accept(), program('ada'));
    expect(story.events.flatMap(({ type, payload }) => (type === 'approval.received' ? [payload] : []))).toMatchObject([
      { decidedBy: 'one#ada' },
      { decidedBy: 'two#ada' },
      { decidedBy: 'ada' },
    ]);
    expect(vote(accept('bob'), program('one'))).toBe('decided');
  });

  it.each([[''], [7], [null], [['ada']]])('is the program itself if the label is %j', (voter) => {
    const { story, vote } = asking();
    vote({ action: 'accept', voter });
    expect(story.last('approval.received')!.decidedBy).toBe('robot');
  });

  it('is always the authenticated person, whatever the label', () => {
    const { story, vote } = asking({ requiredApprovals: 2 });
    expect(vote(accept('ada'), person('eve'))).toBe('open');
    expect(vote(accept('bob'), person('eve'))).toBe('open');
    expect(story.last('approval.received')!.decidedBy).toBe('eve');
    expect(vote(accept(), person('ada'))).toBe('decided');
  });

  it('must be on the list of approvers, if there is one', () => {
    const { story, vote } = asking({ approversList: ['ada', 'bob'] });
    const before = story.run.sequence;
    expect(vote(accept())).toBe('forbidden');
    expect(vote({ action: 'ask', question: '?' }, person('eve'))).toBe('forbidden');
    expect(story.run.sequence).toBe(before);
    expect(vote(accept(), person('ada'))).toBe('decided');
  });

  it.each([
    [{ approversList: ['ada', 'robot'] }],
    [{ approverRoleRefs: ['reviewer'] }],
    [{ approverGroupRefs: ['finance'] }],
  ])('cannot be named where %j says who approves, not even by an approver', (data) => {
    const { story, vote } = asking(data);
    const before = story.run.sequence;
    for (const by of [program(), person('ada'), approver]) {
      for (const voter of ['ada', 'eve', '', null]) expect(vote({ action: 'accept', voter }, by)).toBe('forbidden');
      expect(vote({ action: 'ask', question: '?', voter: 'ada' }, by)).toBe('forbidden');
    }
    expect(story.run.sequence).toBe(before);
  });

  it.each([
    [{ approverRoleRefs: ['owner', 'reviewer'] }],
    [{ approverGroupRefs: ['board', 'finance'] }],
    [{ approversList: ['ada'], approverRoleRefs: ['owner'], approverGroupRefs: ['finance'] }],
    [{ approversList: ['zoe'], approverRoleRefs: [], approverGroupRefs: [] }],
  ])('may be whoever any part of %j names', (data) => {
    const { vote } = asking(data);
    expect(vote(accept(), person('eve'))).toBe('forbidden');
    expect(vote(accept(), approver)).toBe('decided');
  });

  it.each([{ approverRoleRefs: ['finance'] }, { approverGroupRefs: ['reviewer'] }])(
    'has no role by a group, and no group by a role: %j',
    (data) => {
      expect(asking(data).vote(accept(), approver)).toBe('forbidden');
    },
  );

  it('may be anybody, under any label, if nobody is named', () => {
    const data = { approversList: [], approverRoleRefs: [], approverGroupRefs: [] };
    expect(asking(data).vote(accept('eve'))).toBe('decided');
  });
});
