import { describe, expect, it } from 'vitest';
import type { StoredEvent } from '../store/log.ts';
import { Hub } from './hub.ts';

describe('the hub', () => {
  it('notifies the subscribers of a run and no others', () => {
    const hub = new Hub();
    const received: string[] = [];
    hub.follow('run-1', () => received.push('one'));
    hub.follow('run-1', () => received.push('two'));
    hub.follow('run-2', () => received.push('other'));
    hub.tell('run-1');
    expect(received).toEqual(['one', 'two']);
  });

  it('passes on the events if it has them', () => {
    const hub = new Hub();
    const received: (readonly StoredEvent[] | undefined)[] = [];
    hub.follow('run-1', (events) => received.push(events));
    hub.tell('run-1', [EVENT]);
    hub.tell('run-1');
    expect(received).toEqual([[EVENT], undefined]);
  });

  it('does not notify those who have unsubscribed', () => {
    const hub = new Hub();
    const received: string[] = [];
    const unsubscribe = hub.follow('run-1', () => received.push('one'));
    hub.follow('run-1', () => received.push('two'));
    unsubscribe();
    hub.tell('run-1');
    expect(received).toEqual(['two']);
  });

  it('allows a listener to unsubscribe while it is being notified', () => {
    const hub = new Hub();
    const received: string[] = [];
    const unsubscribe = hub.follow('run-1', () => {
      received.push('one');
      unsubscribe();
    });
    hub.follow('run-1', () => received.push('two'));
    hub.tell('run-1');
    hub.tell('run-1');
    expect(received).toEqual(['one', 'two', 'two']);
  });

  it('ignores a second unsubscribe, even after somebody else has subscribed', () => {
    const hub = new Hub();
    const received: string[] = [];
    const unsubscribe = hub.follow('run-1', () => received.push('gone'));
    unsubscribe();
    hub.follow('run-1', () => received.push('new'));
    unsubscribe();
    hub.tell('run-1');
    expect(received).toEqual(['new']);
    expect(hub.followed).toBe(1);
  });

  it('counts the runs that have subscribers, and leaves no entries for others', () => {
    const hub = new Hub();
    const unsubscribe = [hub.follow('run-1', () => {}), hub.follow('run-1', () => {}), hub.follow('run-2', () => {})];
    expect(hub.followed).toBe(2);
    for (const each of unsubscribe) each();
    expect(hub.followed).toBe(0);
  });

  it('does nothing for a run without subscribers', () => {
    expect(() => new Hub().tell('run-1')).not.toThrow();
  });

  it('notifies workers of a work item and when it is due', () => {
    const hub = new Hub();
    const calls: [string, number | undefined][] = [];
    const unsubscribe = hub.onWork((workId, dueAt) => calls.push([workId, dueAt]));
    hub.callToWork('run-1');
    hub.callToWork('run-2', 99);
    unsubscribe();
    hub.callToWork('run-3');
    expect(calls).toEqual([
      ['run-1', undefined],
      ['run-2', 99],
    ]);
  });

  it('sends a notice to current subscribers only', () => {
    const hub = new Hub();
    const received: string[] = [];
    hub.notice('run-1', { event: 'note', data: 'too early' });
    expect(hub.isNoticed('run-1')).toBe(false);
    const unsubscribe = hub.onNotice('run-1', ({ data }) => received.push(data));
    hub.onNotice('run-2', ({ data }) => received.push(`other ${data}`));
    expect(hub.isNoticed('run-1')).toBe(true);
    hub.notice('run-1', { event: 'note', data: 'now' });
    unsubscribe();
    hub.notice('run-1', { event: 'note', data: 'too late' });
    expect(received).toEqual(['now']);
    expect(hub.isNoticed('run-1')).toBe(false);
  });

  it('passes on hints of other hosts by topic', () => {
    const hub = new Hub();
    const received: string[] = [];
    hub.follow('run-1', () => received.push('run'));
    hub.onWork((workId) => received.push(`work ${workId}`));
    hub.connect([], { topic: (subject) => received.push(`topic ${subject}`) });
    for (const hint of ['run:run-1', 'work:cancel-child:run-2', 'topic:a:b', 'unknown:x', '']) hub.hinted(hint);
    expect(received).toEqual(['run', 'work cancel-child:run-2', 'topic a:b']);
  });
});

const EVENT: StoredEvent = { sequence: 0, type: 'run.started', body: '{}', hidden: null };
