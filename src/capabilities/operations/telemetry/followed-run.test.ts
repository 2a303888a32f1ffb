import { describe, expect, it } from 'vitest';
import { line, node, workflow } from '../../../../test/support/definitions.ts';
import type { RunFacts } from '../../../engine/run/run.ts';
import { TestRun } from '../../../engine/testing.ts';
import type { NewEvent } from '../../../protocol/running/events.ts';
import { FollowedRun } from './followed-run.ts';

/** Goal: each span is sent once, by whoever committed its end, and a dead host's last ones by whoever takes over. */

const TRACE = { traceId: 'a'.repeat(32), flags: '01' };
const RECOVERED: NewEvent = { type: 'run.resumed', payload: { recovered: true } };

function story(facts: Partial<RunFacts> = {}): TestRun {
  return new TestRun(workflow([node('a'), node('b')], line('a', 'b')), facts).settle().complete('a').settle();
}

/** A host that follows the run of a story; `sent` are the nodes of the attempts that it has sent. */
function follow(told: TestRun) {
  const sent: unknown[] = [];
  const followed = new FollowedRun(told.run, TRACE, {
    read: async (from, to) => told.events.slice(from, to),
    send: ({ name, attributes }) => {
      if (name.endsWith('.attempt')) sent.push(attributes['openwop.node_id']);
    },
  });
  return { sent, take: (from: number, to = told.events.length) => followed.take(told.events.slice(from, to)) };
}

describe('a host that follows a run', () => {
  it('sends the spans that end with what it has committed', async () => {
    const told = story().complete('b').settle();
    const whole = follow(told);
    await whole.take(0);
    expect(whole.sent).toEqual(['a', 'b']);
  });

  it('sends no spans that another host has ended, and those that it ends itself', async () => {
    const told = story();
    const ended = told.events.length;
    told.complete('b').settle();
    const second = follow(told);
    await second.take(ended);
    expect(second.sent).toEqual(['b']);
  });

  it('sends what a dead host may not have sent', async () => {
    const told = story().record(RECOVERED);
    const second = follow(told);
    await second.take(told.events.length - 1);
    expect(second.sent).toEqual(['a']);
  });

  it('does not send again what a dead host did long before', async () => {
    const told = story();
    told.now += 3_600_000;
    told.record({ type: 'run.paused', payload: { drainPolicy: 'drain-current-node' } }, RECOVERED);
    const second = follow(told);
    await second.take(told.events.length - 1);
    expect(second.sent).toEqual([]);
  });

  it('sends each span once although its own commits are announced out of order', async () => {
    const told = story();
    const ended = told.events.findIndex(({ type }) => type === 'node.completed');
    const own = follow(told);
    own.take(0, ended);
    await own.take(ended + 1);
    own.take(ended, ended + 1);
    expect(own.sent).toEqual(['a']);
  });

  it('sends nothing of what a fork has copied', async () => {
    const copied = story().events.length;
    const fork = { sourceRunId: 'run-0', fromSeq: copied, mode: 'branch', throughSeq: 9, seed: 'run-0' } as const;
    const own = follow(story({ fork }).complete('b').settle());
    await own.take(0);
    expect(own.sent).toEqual(['b']);
  });
});
