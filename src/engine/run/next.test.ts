import { describe, expect, it } from 'vitest';
import { edge, line, node, workflow } from '../../../test/support/definitions.ts';
import { NOW, TestRun } from '../testing.ts';
import { pauseRun } from './commands.ts';
import { dueAt, isBusy, next } from './next.ts';
import { isTerminal, type RunFacts } from './run.ts';

describe('starting', () => {
  it('begins with every start node, ordered by id', () => {
    const story = new TestRun(workflow(['c', 'a', 'b'].map((id) => node(id))));
    expect(startsOf(story)).toEqual(['a', 'b', 'c']);
  });

  it('follows topological order, not the order in which nodes became ready', () => {
    const story = new TestRun(
      workflow(
        ['z', 'a', 'x'].map((id) => node(id)),
        [edge('z', 'a')],
      ),
    );
    // x and z are sources, so both come before a, whatever its name.
    expect(story.plan.nodes.toSorted((a, b) => a.order - b.order).map(({ node: { id } }) => id)).toEqual([
      'x',
      'z',
      'a',
    ]);
    story.start('z').complete('z');
    expect(startsOf(story)).toEqual(['x', 'a']);
  });

  it('starts no more nodes than there are slots', () => {
    const story = new TestRun(workflow(['a', 'b', 'c'].map((id) => node(id))));
    expect(startsOf(story, 2)).toEqual(['a', 'b']);
    expect(startsOf(story, 0)).toEqual([]);
  });

  it('waits if there are no slots, and does not complete the run', () => {
    const story = new TestRun(workflow([node('a')]));
    expect(next(story.run, NOW, 0)).toEqual({ events: [], start: [] });
  });

  it('lets independent branches overlap', () => {
    const story = new TestRun(
      workflow(
        ['s', 'l', 'r'].map((id) => node(id)),
        [edge('s', 'l'), edge('s', 'r')],
      ),
    ).settle();
    story.complete('s').settle();
    expect(story.statuses).toEqual({ s: 'completed', l: 'running', r: 'running' });
  });

  it('puts due retries before nodes that were never started', () => {
    const story = new TestRun(workflow([node('first'), node('retried', 'core.noop', retries(1))]));
    story.start('retried').fail('retried');
    story.now += 1_000;
    expect(startsOf(story)).toEqual(['retried', 'first']);
  });

  it('is pure: the same run at the same time gives the same step', () => {
    const story = new TestRun(workflow(['a', 'b'].map((id) => node(id))));
    expect(next(story.run, NOW, 8)).toEqual(next(story.run, NOW, 8));
    expect(story.run.executions).toBe(0);
  });
});

describe('the end', () => {
  it('comes when nothing is left, with the outputs of the last nodes', () => {
    const story = new TestRun(
      workflow(
        ['a', 'b', 'c'].map((id) => node(id)),
        [edge('a', 'b'), edge('a', 'c')],
      ),
    ).settle();
    story.complete('a', { x: 1 }).settle().complete('b', { y: 2 }).complete('c').settle();
    expect(story.last('run.completed')).toEqual({ outputs: { b: { y: 2 } } });
    expect(story.run.ended).toBe('completed');
  });

  it('has no outputs if no last node has any', () => {
    expect(new TestRun(workflow([node('a')])).settle().complete('a').settle().last('run.completed')).toEqual({});
  });

  it.each(['constructor', '__proto__'])('has the outputs of a node called %s', (id) => {
    const story = new TestRun(workflow([node(id)])).settle().complete(id, { x: 1 }).settle();
    expect(Object.entries(story.last('run.completed')!.outputs!)).toEqual([[id, { x: 1 }]]);
  });

  it('is followed by nothing', () => {
    const story = new TestRun(workflow([node('a')])).settle().complete('a').settle();
    expect(next(story.run, NOW + 10 ** 15, 8)).toEqual({ events: [], start: [] });
    expect(dueAt(story.run)).toBeUndefined();
  });
});

describe('a failed node', () => {
  const two = (more = {}) => workflow([node('f'), node('slow'), node('next')], [edge('slow', 'next')], more);

  it('fails the run with its error, the node and the cause', () => {
    const story = new TestRun(workflow([node('f')])).settle().fail('f', { code: 'boom', message: 'Boom.' }).settle();
    const failed = story.events.at(-1)!;
    expect(failed).toMatchObject({
      type: 'run.failed',
      payload: { error: { code: 'boom', message: 'Boom.' }, failedNodeId: 'f' },
    });
    expect(failed.causationId).toBe(story.events.find(({ type }) => type === 'node.failed')!.eventId);
  });

  it('lets nodes in flight finish and starts no others', () => {
    const story = new TestRun(two()).settle().fail('f').settle();
    expect(isTerminal(story.run)).toBe(false);
    story.complete('slow').settle();
    expect(story.run.ended).toBe('failed');
    expect(story.status('next')).not.toBe('running');
    expect(story.eventLabels).not.toContain('node.started next');
  });

  it('does not retry others that fail while the run is failing', () => {
    const story = new TestRun(two({ settings: { maxRetries: 3 } })).settle();
    story.fail('f', { retryable: false }).fail('slow').settle();
    expect(story.eventLabels).toContain('node.failed slow');
    expect(story.run.error?.code).toBe('broken');
    expect(story.run.ended).toBe('failed');
  });

  it('keeps the first of two failures as the reason', () => {
    const story = new TestRun(two()).settle();
    story.fail('f', { code: 'first' }).fail('slow', { code: 'second' }).settle();
    expect(story.run.error?.code).toBe('first');
  });

  it('cancels a waiting retry', () => {
    const story = new TestRun(workflow([node('f'), node('r', 'core.noop', retries(5))])).settle();
    story.fail('r').fail('f').settle();
    expect(story.eventLabels).toContain('node.cancelled r');
    expect(story.run.ended).toBe('failed');
  });

  it.each(['any_failed', 'all_complete'] as const)('is handled by a target under %s', (triggerRule) => {
    const story = new TestRun(workflow([node('f'), node('rescue')], [edge('f', 'rescue', { triggerRule })])).settle();
    story.fail('f').settle().complete('rescue').settle();
    expect(story.run.ended).toBe('completed');
  });

  it.each(['all_success', 'any_success', 'none_failed'] as const)('is not handled under %s', (triggerRule) => {
    const story = new TestRun(workflow([node('f'), node('t')], [edge('f', 't', { triggerRule })])).settle();
    story.fail('f').settle();
    expect(story.run.ended).toBe('failed');
  });

  it('fails the run if its handler fails too', () => {
    const story = new TestRun(
      workflow([node('f'), node('rescue')], [edge('f', 'rescue', { triggerRule: 'any_failed' })]),
    );
    story.settle().fail('f').settle().fail('rescue', { code: 'worse' }).settle();
    expect(story.run).toMatchObject({ ended: 'failed', error: { code: 'worse' } });
  });
});

describe('the limit of node executions', () => {
  const limited = (maxNodeExecutions: number): Partial<RunFacts> => ({
    limits: { maxNodeExecutions, maxRunDurationMs: 1_000_000 },
  });

  it('is breached before the excess node starts: once, with more observed than allowed', () => {
    const story = new TestRun(
      workflow(
        ['a', 'b', 'c'].map((id) => node(id)),
        line('a', 'b', 'c'),
      ),
      limited(2),
    ).settle();
    story.complete('a').settle().complete('b').settle();
    expect(story.eventLabels.slice(-2)).toEqual(['cap.breached c', 'run.failed']);
    expect(story.eventLabels.filter((told) => told.startsWith('cap.breached'))).toHaveLength(1);
    expect(story.last('cap.breached')).toEqual({ kind: 'node-executions', limit: 2, observed: 3, nodeId: 'c' });
    expect(story.last('run.failed')?.error.code).toBe('recursion_limit_exceeded');
    expect(story.eventLabels).not.toContain('node.started c');
  });

  it('does not affect a run that needs exactly as many', () => {
    const story = new TestRun(
      workflow(
        ['a', 'b'].map((id) => node(id)),
        line('a', 'b'),
      ),
      limited(2),
    ).settle();
    story.complete('a').settle().complete('b').settle();
    expect(story.run.ended).toBe('completed');
  });

  it('cancels nodes that run beside the excess node', () => {
    const story = new TestRun(workflow(['a', 'b', 'c'].map((id) => node(id))), limited(2)).settle();
    expect(story.eventLabels).toEqual([
      'run.started',
      'node.started a',
      'node.started b',
      'cap.breached c',
      'node.cancelled a',
      'node.cancelled b',
      'run.failed',
    ]);
  });

  it('counts retries', () => {
    const story = new TestRun(workflow([node('a', 'core.noop', retries(5))]), limited(2)).settle();
    for (let count = 0; count < 2; count++) {
      story.fail('a');
      story.now += 60_000;
      story.settle();
    }
    expect(story.last('cap.breached')).toMatchObject({ limit: 2, observed: 3, nodeId: 'a' });
    expect(story.run.ended).toBe('failed');
  });
});

describe('the limit of duration', () => {
  const limited: Partial<RunFacts> = { limits: { maxNodeExecutions: 10, maxRunDurationMs: 1_000 } };

  it('is breached when more time has passed than allowed, and not earlier', () => {
    const story = new TestRun(workflow([node('a')]), limited).settle();
    story.now = NOW + 1_000;
    story.settle();
    expect(story.run.ended).toBeUndefined();
    story.now = dueAt(story.run)!;
    story.settle();
    expect(story.last('cap.breached')).toEqual({ kind: 'run-duration', limit: 1_000, observed: 1_001 });
    expect(story.last('run.failed')?.error.code).toBe('run_timeout');
  });

  it('cancels running nodes, starts nothing, and is breached once', () => {
    const story = new TestRun(workflow([node('a'), node('b')], line('a', 'b')), limited).settle();
    story.now += 5_000;
    story.complete('a').settle();
    expect(story.eventLabels.slice(-2)).toEqual(['cap.breached', 'run.failed']);
    expect(story.eventLabels).not.toContain('node.started b');
  });

  it('ends a run that takes too long to fail', () => {
    const story = new TestRun(workflow([node('f'), node('slow')]), limited).settle().fail('f').settle();
    story.now += 5_000;
    story.settle();
    expect(story.eventLabels.slice(-3)).toEqual(['cap.breached', 'node.cancelled slow', 'run.failed']);
    expect(story.run.error?.code).toBe('run_timeout');
  });

  it('names the cap as the cause of the failure', () => {
    const story = new TestRun(workflow([node('a')]), limited).settle();
    story.now += 5_000;
    story.settle();
    const breached = story.events.find(({ type }) => type === 'cap.breached')!;
    expect(story.events.at(-1)?.causationId).toBe(breached.eventId);
  });
});

describe('a node with a timeout', () => {
  const impatient = (maxRetries = 0) => node('a', 'core.noop', { settings: { timeoutMs: 100, retry: { maxRetries } } });

  it('fails when an attempt has taken that long', () => {
    const story = new TestRun(workflow([impatient()])).settle();
    story.now = NOW + 99;
    expect(next(story.run, story.now, 8).events).toEqual([]);
    expect(dueAt(story.run)).toBe(NOW + 100);
    story.now = NOW + 100;
    story.settle();
    expect(story.last('node.failed')).toMatchObject({ nodeId: 'a', error: { code: 'node_timeout' } });
    expect(story.run.ended).toBe('failed');
  });

  it('is not charged for the time that a person took to answer', () => {
    const story = new TestRun(workflow([impatient()])).settle();
    story.suspend('a', 'int-1');
    story.now = NOW + 5_000;
    story.settle();
    const answer = { nodeId: 'a', interruptId: 'int-1', resumeValue: { action: 'accept' } };
    story.record(
      { type: 'interrupt.resolved', nodeId: 'a', payload: { ...answer, kind: 'approval' } },
      { type: 'node.resumed', nodeId: 'a', payload: answer },
    );
    expect(next(story.run, story.now, 8).events).toEqual([]);
    expect(dueAt(story.run)).toBe(NOW + 5_100);
    story.now += 100;
    story.settle();
    expect(story.last('node.failed')).toMatchObject({ error: { code: 'node_timeout' } });
  });

  it('is not charged for the time of a child run, and has as long again when that has ended', () => {
    const story = new TestRun(workflow([impatient()])).settle().dispatch('a');
    story.now = NOW + 5_000;
    expect(next(story.run, story.now, 8).events).toEqual([]);
    const payload = { nodeId: 'a', childRunId: 'run-child', status: 'completed' };
    story.record({ type: 'capstan.child.changed', nodeId: 'a', payload });
    expect(dueAt(story.run)).toBe(NOW + 5_100);
    story.now += 100;
    story.settle();
    expect(story.last('node.failed')).toMatchObject({ error: { code: 'node_timeout' } });
  });

  it('is retried if it has retries, with a new timeout for each attempt', () => {
    const story = new TestRun(workflow([impatient(1)])).settle();
    story.now += 100;
    story.settle();
    const { delayMs } = story.last('node.retried')!;
    story.now += delayMs;
    story.settle();
    expect(story.status('a')).toBe('running');
    expect(dueAt(story.run)).toBe(story.now + 100);
  });

  it('fails while a pause waits for it', () => {
    const story = new TestRun(workflow([impatient()])).settle();
    story.record({ type: 'capstan.pause.requested', payload: { drainPolicy: 'drain-current-node' } });
    story.now += 100;
    story.settle();
    expect(story.eventLabels).toContain('node.failed a');
  });

  it('fails while the run is failing, so that a hung node cannot keep the run from ending', () => {
    const story = new TestRun(workflow([impatient(), node('f')])).settle().fail('f').settle();
    story.now += 100;
    story.settle();
    expect(story.eventLabels).toContain('node.failed a');
    expect(story.run.ended).toBe('failed');
  });
});

describe('when a run is due', () => {
  it('is its deadline, if nothing is due earlier', () => {
    const story = new TestRun(workflow([node('a')]), {
      limits: { maxNodeExecutions: 1, maxRunDurationMs: 50 },
    }).settle();
    expect(dueAt(story.run)).toBe(NOW + 51);
  });

  it('is the next retry', () => {
    const story = new TestRun(workflow([node('a', 'core.noop', retries(1))])).settle().fail('a');
    expect(dueAt(story.run)).toBe(NOW + story.last('node.retried')!.delayMs);
  });

  it('is never while it is paused', () => {
    const story = new TestRun(workflow([node('a')])).record({
      type: 'run.paused',
      payload: { drainPolicy: 'immediate' },
    });
    expect(dueAt(story.run)).toBeUndefined();
  });

  // A due time in the past with nothing to do would make the host look again at once, forever.
  it('lies in the future if there is nothing to do: a retry that becomes due while the run is failing', () => {
    const story = new TestRun(workflow([node('r', 'core.noop', retries(5)), node('slow'), node('f')])).settle();
    story.fail('r').fail('f', { retryable: false });
    story.now += 60_000;
    expect(next(story.run, story.now, 8)).toEqual({ events: [], start: [] });
    expect(dueAt(story.run)).toBeGreaterThan(story.now);
  });

  it('lies in the future if there is nothing to do: a retry that becomes due while a pause waits for others', () => {
    const story = new TestRun(workflow([node('r', 'core.noop', retries(5)), node('slow')])).settle();
    story.fail('r').record({ type: 'capstan.pause.requested', payload: { drainPolicy: 'drain-current-node' } });
    story.now += 60_000;
    expect(next(story.run, story.now, 8)).toEqual({ events: [], start: [] });
    expect(dueAt(story.run)).toBeGreaterThan(story.now);
  });
});

describe('a draining pause', () => {
  const paused = (...ids: string[]): TestRun =>
    new TestRun(
      workflow(
        ids.map((id) => node(id)),
        line(...ids),
      ),
    )
      .settle()
      .record({ type: 'capstan.pause.requested', payload: { drainPolicy: 'drain-current-node', reason: 'lunch' } });

  it('lets the running node finish and starts nothing after it', () => {
    const story = paused('a', 'b').settle();
    expect(story.run.pause).toBeUndefined();
    story.now += 7;
    story.complete('a').settle();
    expect(story.eventLabels.slice(-2)).toEqual(['node.completed a', 'run.paused']);
    expect(story.last('run.paused')).toEqual({ drainPolicy: 'drain-current-node', reason: 'lunch' });
    expect(story.run.pause?.at).toBe(NOW);
    expect(story.status('b')).toBe('ready');
  });

  it('holds back the completion of a run whose only node has finished', () => {
    const story = paused('a').settle().complete('a').settle();
    expect(story.eventLabels.at(-1)).toBe('run.paused');
    story.record({ type: 'run.resumed', payload: {} }).settle();
    expect(story.eventLabels.at(-1)).toBe('run.completed');
  });

  it('also waits for a child run', () => {
    const story = new TestRun(workflow([node('a')])).settle().dispatch('a');
    expect(isBusy(story.run)).toBe(true);
    expect(pauseRun(story.run, { drainPolicy: 'drain-current-node' })).toEqual([
      { type: 'capstan.pause.requested', payload: { drainPolicy: 'drain-current-node' } },
    ]);
  });

  it('does not wait for a retry, which continues after the resume', () => {
    const story = new TestRun(workflow([node('a', 'core.noop', retries(1))])).settle().fail('a');
    expect(pauseRun(story.run, { drainPolicy: 'drain-current-node' })).toEqual([
      { type: 'run.paused', payload: { drainPolicy: 'drain-current-node' } },
    ]);
    story.record({ type: 'run.paused', payload: { drainPolicy: 'drain-current-node' } });
    story.now += 60_000;
    story.settle();
    expect(story.status('a')).toBe('retrying');
    story.record({ type: 'run.resumed', payload: {} }).settle();
    expect(story.status('a')).toBe('running');
  });

  it('yields to a failure', () => {
    const story = paused('a', 'b').settle().fail('a').settle();
    expect(story.run.ended).toBe('failed');
  });
});

describe('an immediate pause', () => {
  it('aborts the running attempt without an event, and starts a new attempt after the resume', () => {
    const story = new TestRun(workflow([node('a')])).settle();
    story.record({ type: 'run.paused', payload: { drainPolicy: 'immediate' } }).settle();
    expect(story.eventLabels.slice(-1)).toEqual(['run.paused']);
    expect(story.status('a')).toBe('ready');
    story.record({ type: 'run.resumed', payload: {} }).settle();
    expect(story.last('node.started')).toMatchObject({ nodeId: 'a', attempt: 1 });
    story.complete('a').settle();
    expect(story.run.ended).toBe('completed');
  });

  it('does not use up a retry', () => {
    const story = new TestRun(workflow([node('a', 'core.noop', retries(1))])).settle();
    story.record({ type: 'run.paused', payload: { drainPolicy: 'immediate' } }, { type: 'run.resumed', payload: {} });
    story.settle().fail('a');
    expect(story.last('node.retried')).toMatchObject({ attempt: 2 });
  });

  it('does not affect a child run', () => {
    const story = new TestRun(workflow([node('a')])).settle().dispatch('a');
    story.record({ type: 'run.paused', payload: { drainPolicy: 'immediate' } });
    expect(story.status('a')).toBe('waiting');
  });
});

function retries(maxRetries: number): { settings: { retry: { maxRetries: number } } } {
  return { settings: { retry: { maxRetries } } };
}

function startsOf({ run, now }: TestRun, slots = 8): string[] {
  return next(run, now, slots).start.map(({ node: { id } }) => id);
}
