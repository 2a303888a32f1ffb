import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../../test/support/definitions.ts';
import { NOW, TestRun } from '../testing.ts';
import { cancelRun, pauseRun, resumeRun } from './commands.ts';
import { fold } from './fold.ts';
import { statusOf } from './run.ts';

const DRAIN = { drainPolicy: 'drain-current-node' } as const;
const AT_ONCE = { drainPolicy: 'immediate' } as const;

describe('cancelling', () => {
  it('cancels nodes in flight and then the run, with principal and reason', () => {
    const story = running('a', 'b');
    const events = cancelRun(story.run, { reason: 'enough', cancelledBy: 'somebody' });
    expect(events).toEqual([
      { type: 'node.cancelled', nodeId: 'a', payload: { nodeId: 'a', reason: 'run-cancelled' } },
      { type: 'node.cancelled', nodeId: 'b', payload: { nodeId: 'b', reason: 'run-cancelled' } },
      { type: 'run.cancelled', payload: { reason: 'enough', cancelledBy: 'somebody' } },
    ]);
    story.record(...(events as []));
    expect(statusOf(story.run)).toBe('cancelled');
  });

  it('names the parent run it came from', () => {
    expect(cancelRun(running().run, { reason: 'parent-cancelled', parentRunId: 'run-0' })).toEqual([
      { type: 'run.cancelled', payload: { reason: 'parent-cancelled', parentRunId: 'run-0' } },
    ]);
  });

  it.each([
    ['is paused', (story: TestRun) => story.record({ type: 'run.paused', payload: AT_ONCE })],
    ['waits to be paused', (story: TestRun) => story.record({ type: 'capstan.pause.requested', payload: DRAIN })],
    ['waits for a child', (story: TestRun) => story.dispatch('a')],
    ['is coming to a bad end', (story: TestRun) => story.fail('b')],
  ])('is possible while the run %s', (_when, bringAbout) => {
    const story = bringAbout(running('a', 'b'));
    story.record(...(cancelRun(story.run, {}) as []));
    expect(statusOf(story.run)).toBe('cancelled');
    expect(Object.values(story.statuses)).not.toContain('running');
  });

  it('is refused once the run has ended', () => {
    expect(cancelRun(ended().run, {})).toMatchObject({ refused: 'run_terminal', details: { runStatus: 'completed' } });
  });
});

describe('pausing', () => {
  it('is immediate on request, and records who asked', () => {
    expect(pauseRun(running('a').run, { ...AT_ONCE, reason: 'look', pausedBy: 'ada' })).toEqual([
      { type: 'run.paused', payload: { drainPolicy: 'immediate', reason: 'look', pausedBy: 'ada' } },
    ]);
  });

  it('is immediate if nothing is running', () => {
    expect(pauseRun(new TestRun(workflow([node('a')])).run, DRAIN)).toEqual([{ type: 'run.paused', payload: DRAIN }]);
  });

  it('waits for running nodes otherwise', () => {
    expect(pauseRun(running('a').run, DRAIN)).toEqual([{ type: 'capstan.pause.requested', payload: DRAIN }]);
  });

  it.each(['run.paused', 'capstan.pause.requested'] as const)('is refused after %s, with the time of it', (type) => {
    const story = running('a').record({ type, payload: DRAIN });
    expect(pauseRun(story.run, DRAIN)).toMatchObject({
      refused: 'run_state_conflict',
      details: { runStatus: 'paused', pausedAt: new Date(NOW).toISOString() },
    });
  });

  it('is refused once the run has ended', () => {
    expect(pauseRun(ended().run, DRAIN)).toMatchObject({
      refused: 'run_terminal',
      details: { runStatus: 'completed' },
    });
  });
});

describe('resuming', () => {
  it.each(['run.paused', 'capstan.pause.requested'] as const)('undoes %s', (type) => {
    const story = running('a').record({ type, payload: DRAIN });
    const events = resumeRun(story.run, { reason: 'go on', resumedBy: 'ada' });
    expect(events).toEqual([{ type: 'run.resumed', payload: { reason: 'go on', resumedBy: 'ada' } }]);
    story.record(...(events as []));
    expect(statusOf(story.run)).toBe('running');
    expect(story.run).not.toHaveProperty('draining');
  });

  it('is refused if the run is not paused', () => {
    expect(resumeRun(running('a').run)).toMatchObject({
      refused: 'run_state_conflict',
      details: { runStatus: 'running' },
    });
  });

  it('is refused once the run has ended', () => {
    expect(resumeRun(ended().run)).toMatchObject({ refused: 'run_terminal', details: { runStatus: 'completed' } });
  });
});

describe('the status of a run', () => {
  it('is pending before its first event', () => {
    const { plan, facts } = running('a');
    expect(statusOf(fold(plan, facts, []))).toBe('pending');
  });

  it('is running until a requested pause takes effect', () => {
    const story = running('a').record({ type: 'capstan.pause.requested', payload: DRAIN });
    expect(statusOf(story.run)).toBe('running');
    expect(statusOf(story.complete('a').settle().run)).toBe('paused');
  });
});

function running(...ids: string[]): TestRun {
  const story = new TestRun(workflow((ids.length > 0 ? ids : ['later']).map((id) => node(id))));
  for (const id of ids) story.start(id);
  return story;
}

function ended(): TestRun {
  return running('a').complete('a').settle();
}
