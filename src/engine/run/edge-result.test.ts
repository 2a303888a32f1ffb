import { describe, expect, it } from 'vitest';
import { edge, node, workflow } from '../../../test/support/definitions.ts';
import type { EdgeCondition, TriggerRule } from '../../protocol/running/workflows.ts';
import { TestRun } from '../testing.ts';

const when = (action: string): EdgeCondition => ({ type: 'expression', expression: `output.action == "${action}"` });
const REFINE = { action: 'refine', refineFeedback: { scope: 'whole' } };

/** The status of the one node after a gate, once the gate was answered and has completed. */
function statusAfter(answer: { action: string }, triggerRule: TriggerRule, condition?: EdgeCondition): string {
  const after = edge('gate', 'after', { triggerRule, ...(condition ? { condition } : {}) });
  const story = new TestRun(workflow([node('gate'), node('after')], [after])).settle();
  const data = { artifactId: 'a', artifactType: 't', title: 't', actions: ['accept', 'reject', 'refine'] };
  story.suspend('gate', 'int-1', { kind: 'approval', data });
  story.answer('gate', answer).settle();
  return story.status('after');
}

describe('after a gate', () => {
  it.each<[string, { action: string }, EdgeCondition | undefined, string]>([
    ['a rejection', { action: 'reject' }, undefined, 'running'],
    ['a rejection that the condition names', { action: 'reject' }, when('reject'), 'running'],
    ['a rejection, whatever the condition names', { action: 'reject' }, when('timeout'), 'running'],
    ['a wish to refine', REFINE, undefined, 'skipped'],
    ['a wish to refine that the condition names', REFINE, when('refine'), 'running'],
    ['an acceptance', { action: 'accept' }, undefined, 'skipped'],
  ])('a node that waits for a failure is, on %s', (_what, answer, condition, status) => {
    expect(statusAfter(answer, 'any_failed', condition)).toBe(status);
  });

  it.each([undefined, when('reject'), when('accept')])(
    'a node that only waits for the end starts with the condition %j',
    (condition) => {
      for (const answer of [{ action: 'reject' }, REFINE, { action: 'accept' }]) {
        expect(statusAfter(answer, 'all_complete', condition)).toBe('running');
      }
    },
  );

  it.each<TriggerRule>(['all_success', 'any_success', 'none_failed'])(
    'a node under %s starts after a no only if its condition is for that',
    (rule) => {
      expect(statusAfter({ action: 'reject' }, rule)).not.toBe('running');
      expect(statusAfter({ action: 'reject' }, rule, when('accept'))).not.toBe('running');
      expect(statusAfter({ action: 'reject' }, rule, when('reject'))).toBe('running');
      expect(statusAfter({ action: 'accept' }, rule)).toBe('running');
    },
  );
});

describe('conditions that take too much', () => {
  const texts = workflow(
    [node('a'), node('b')],
    [edge('a', 'b', { condition: { type: 'regex', left: 'text', right: '^[a-z ]{1,200}$' } })],
  );

  it('count as false, with a warning, where a text is too long for a pattern', () => {
    const run = new TestRun(texts).settle();
    run.complete('a', { text: 'a'.repeat(10_000) });
    expect(run.run.edgeResults.get('a-b')).toBe('skipped');
    expect([...run.run.warnings.values()].map(({ reason }) => reason)).toEqual([
      'the text is too long for the pattern',
    ]);
  });

  it('count as false from the moment on at which all of a node take too much together', () => {
    const targets = Array.from({ length: 40 }, (_, index) => `t${index}`);
    const heavy = 'variables.l.all(a, variables.l.all(b, a >= b || a < b))';
    const condition: EdgeCondition = { type: 'expression', expression: heavy };
    const definition = {
      ...workflow(
        [node('a'), ...targets.map((id) => node(id))],
        targets.map((id) => edge('a', id, { condition })),
      ),
      variables: [{ name: 'l', type: 'array' as const, defaultValue: Array.from({ length: 150 }, (_, item) => item) }],
    };
    const started = () => {
      const run = new TestRun(definition).settle();
      run.complete('a', {});
      expect(new Set([...run.run.warnings.values()].map(({ reason }) => reason))).toEqual(
        new Set(['expressions that are evaluated together take more than 500000 steps']),
      );
      return targets.filter((id) => run.run.edgeResults.get(`a-${id}`) === 'succeeded');
    };
    const first = started();
    expect(first.length).toBeGreaterThan(1);
    expect(first.length).toBeLessThan(20);
    expect(started()).toEqual(first);
  });
});
