import { describe, expect, it } from 'vitest';
import { edge, node, workflow } from '../../../test/support/definitions.ts';
import { stateOf, TestRun } from '../testing.ts';

const ASKED = { artifactId: 'a', artifactType: 't', title: 't', actions: ['accept', 'reject', 'refine'] };
const REFINE = { action: 'refine', refineFeedback: { scope: 'whole' } };
const ACCEPT = { action: 'accept' };
const back = (gate: string) =>
  edge(gate, 'draft', { condition: { type: 'expression', expression: 'output.action == "refine"' } });

/** A draft that two people have to approve, each of whom may send it back. */
function drafted(): TestRun {
  const nodes = ['draft', 'one', 'two', 'publish'].map((id) => node(id));
  const on = [edge('draft', 'one'), edge('draft', 'two'), edge('one', 'publish'), edge('two', 'publish')];
  return write(new TestRun(workflow(nodes, [...on, back('one'), back('two')])).settle(), 'first');
}

function write(story: TestRun, text: string): TestRun {
  return story.complete('draft', { text }).settle();
}

function ask(story: TestRun, ...gates: string[]): void {
  for (const gate of gates) {
    const interruptId = `int-${story.events.length}`;
    story.suspend(gate, interruptId, { kind: 'approval', data: ASKED });
  }
}

function answer(story: TestRun, gate: string, given: { action: string }): void {
  story.answer(gate, given).settle();
}

describe('a loop through one of two gates', () => {
  it('asks the other again: an approval of what was before does not count', () => {
    const story = drafted();
    ask(story, 'one', 'two');
    answer(story, 'one', REFINE);
    write(story, 'second');
    ask(story, 'one');
    answer(story, 'one', ACCEPT);
    expect(story.statuses).toMatchObject({ one: 'completed', two: 'suspended', publish: 'pending' });
    answer(story, 'two', ACCEPT);
    expect(story.statuses).toMatchObject({ two: 'running', publish: 'pending' });
    ask(story, 'two');
    answer(story, 'two', ACCEPT);
    expect(story.status('publish')).toBe('running');
    expect(stateOf(story.replayed())).toEqual(stateOf(story.run));
  });

  it('starts no node twice under one attempt, though both send it back', () => {
    const story = drafted();
    ask(story, 'one', 'two');
    answer(story, 'one', REFINE);
    answer(story, 'two', REFINE);
    const starts = story.events.filter(({ type, nodeId }) => type === 'node.started' && nodeId === 'draft');
    expect(starts.map(({ payload }) => payload)).toMatchObject([{ attempt: 0 }, { attempt: 1 }]);
    expect(story.statuses).toMatchObject({ draft: 'running', two: 'pending' });
    write(story, 'second');
    ask(story, 'one', 'two');
    answer(story, 'one', ACCEPT);
    answer(story, 'two', ACCEPT);
    expect(story.status('publish')).toBe('running');
  });

  it('does not fail for what was at work with what was before', () => {
    const story = drafted();
    ask(story, 'one');
    answer(story, 'one', REFINE);
    story.fail('two');
    expect(story.run.failure).toBeUndefined();
    write(story, 'second');
    expect(story.statuses).toMatchObject({ one: 'running', two: 'running', publish: 'pending' });
  });
});
