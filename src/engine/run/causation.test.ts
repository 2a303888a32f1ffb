import { describe, expect, it } from 'vitest';
import { edge, node, workflow } from '../../../test/support/definitions.ts';
import { TestRun } from '../testing.ts';

/** Each event with the event that it names as its cause, as `type node`. */
function causes(story: TestRun): Record<string, string | undefined> {
  const labels = story.eventLabels;
  const byId = new Map(story.events.map(({ eventId }, index) => [eventId, labels[index]]));
  return Object.fromEntries(
    story.events.map(({ causationId }, index) => [labels[index], byId.get(causationId ?? '')] as const),
  );
}

describe('the cause of an event', () => {
  it('is what made a node ready, what the node acted on, and what settled last', () => {
    const story = new TestRun(workflow([node('a'), node('b')], [edge('a', 'b')])).settle();
    story.complete('a', { x: 1 }).settle().complete('b').settle();
    expect(causes(story)).toEqual({
      'run.started': undefined,
      'node.started a': 'run.started',
      'node.completed a': 'node.started a',
      'node.started b': 'node.completed a',
      'node.completed b': 'node.started b',
      'run.completed': 'node.completed b',
    });
  });

  it('is the first of several nodes that made a node ready', () => {
    const definition = workflow(
      [node('a'), node('b'), node('c')],
      [edge('a', 'c', { triggerRule: 'any_success' }), edge('b', 'c', { triggerRule: 'any_success' })],
    );
    const story = new TestRun(definition).settle().complete('b').complete('a').settle();
    expect(causes(story)['node.started c']).toBe('node.completed b');
  });

  it('is the question for an answer, and the answer for what follows', () => {
    const story = new TestRun(workflow([node('a')])).settle().suspend('a', 'int-1');
    story.record(
      { type: 'interrupt.resolved', nodeId: 'a', payload: { nodeId: 'a', interruptId: 'int-1', resumeValue: {} } },
      { type: 'node.resumed', nodeId: 'a', payload: { nodeId: 'a', interruptId: 'int-1' } },
    );
    story.complete('a').settle();
    expect(causes(story)).toMatchObject({
      'node.suspended a': 'node.started a',
      'interrupt.requested a': 'node.suspended a',
      'approval.requested a': 'node.suspended a',
      'interrupt.resolved a': 'interrupt.requested a',
      'node.resumed a': 'interrupt.resolved a',
      'node.completed a': 'node.resumed a',
    });
  });

  it('is the retry for a second attempt, and the failure for the end of the run', () => {
    const story = new TestRun(workflow([node('a', 'core.noop', { settings: { retry: { maxRetries: 1 } } })])).settle();
    story.fail('a');
    const retry = story.events.at(-1)!;
    story.now += 60_000;
    story.settle();
    expect(retry.type).toBe('node.retried');
    expect(story.events.findLast(({ type }) => type === 'node.started')!.causationId).toBe(retry.eventId);
    story.fail('a', { retryable: false }).settle();
    expect(causes(story)['run.failed']).toBe('node.failed a');
  });

  it('is the start of a child for what its parent hears of it', () => {
    const story = new TestRun(workflow([node('a')])).settle().dispatch('a', 'run-child');
    const payload = { nodeId: 'a', childRunId: 'run-child', status: 'completed' };
    story.record({ type: 'capstan.child.changed', nodeId: 'a', payload }).complete('a').settle();
    expect(causes(story)).toMatchObject({
      'node.dispatched a': 'node.started a',
      'capstan.child.changed a': 'node.dispatched a',
      'node.completed a': 'capstan.child.changed a',
    });
  });

  it('is the decision of the supervisor for everything that a dispatch node does', () => {
    const definition = workflow(
      [node('s', 'core.orchestrator.supervisor'), node('d', 'core.dispatch')],
      [edge('s', 'd')],
    );
    const story = new TestRun(definition).settle();
    const decision = { kind: 'next-worker' as const, nextWorkerIds: ['w'] };
    const payload = { agentId: 'host:supervisor:s', decision };
    story.record({ type: 'runOrchestrator.decided', nodeId: 's', payload }).complete('s').settle().dispatch('d');
    expect(causes(story)).toMatchObject({
      'runOrchestrator.decided s': 'node.started s',
      'node.started d': 'runOrchestrator.decided s',
      'node.dispatched d': 'runOrchestrator.decided s',
    });
  });
});
