import { describe, expect, it } from 'vitest';
import type { StoredEvent } from '../store/log.ts';
import { Hub } from './hub.ts';

describe('the hub', () => {
  it('notifies the subscribers of a run and no others', () => {
    const hub = new Hub();
    const received: string[] = [];
    hub.subscribe('run-1', () => received.push('one'));
    hub.subscribe('run-1', () => received.push('two'));
    hub.subscribe('run-2', () => received.push('other'));
    hub.publish('run-1');
    expect(received).toEqual(['one', 'two']);
  });

  it('passes on the events if it has them', () => {
    const hub = new Hub();
    const received: (readonly StoredEvent[] | undefined)[] = [];
    hub.subscribe('run-1', (events) => received.push(events));
    hub.publish('run-1', [EVENT]);
    hub.publish('run-1');
    expect(received).toEqual([[EVENT], undefined]);
  });

  it('does not notify those who have unsubscribed', () => {
    const hub = new Hub();
    const received: string[] = [];
    const unsubscribe = hub.subscribe('run-1', () => received.push('one'));
    hub.subscribe('run-1', () => received.push('two'));
    unsubscribe();
    hub.publish('run-1');
    expect(received).toEqual(['two']);
  });

  it('allows a listener to unsubscribe while it is being notified', () => {
    const hub = new Hub();
    const received: string[] = [];
    const unsubscribe = hub.subscribe('run-1', () => {
      received.push('one');
      unsubscribe();
    });
    hub.subscribe('run-1', () => received.push('two'));
    hub.publish('run-1');
    hub.publish('run-1');
    expect(received).toEqual(['one', 'two', 'two']);
  });

  it('ignores a second unsubscribe, even after somebody else has subscribed', () => {
    const hub = new Hub();
    const received: string[] = [];
    const unsubscribe = hub.subscribe('run-1', () => received.push('gone'));
    unsubscribe();
    hub.subscribe('run-1', () => received.push('new'));
    unsubscribe();
    hub.publish('run-1');
    expect(received).toEqual(['new']);
    expect(hub.subscribedRuns).toBe(1);
  });

  it('counts the runs that have subscribers, and leaves no entries for others', () => {
    const hub = new Hub();
    const unsubscribe = [
      hub.subscribe('run-1', () => {}),
      hub.subscribe('run-1', () => {}),
      hub.subscribe('run-2', () => {}),
    ];
    expect(hub.subscribedRuns).toBe(2);
    for (const each of unsubscribe) each();
    expect(hub.subscribedRuns).toBe(0);
  });

  it('does nothing for a run without subscribers', () => {
    expect(() => new Hub().publish('run-1')).not.toThrow();
  });

  it('notifies workers of a work item and when it is due', () => {
    const hub = new Hub();
    const calls: [string, number | undefined][] = [];
    const unsubscribe = hub.onWork((workId, dueAt) => calls.push([workId, dueAt]));
    hub.wakeWorkers('run-1');
    hub.wakeWorkers('run-2', 99);
    unsubscribe();
    hub.wakeWorkers('run-3');
    expect(calls).toEqual([
      ['run-1', undefined],
      ['run-2', 99],
    ]);
  });

  it('sends a notice to current subscribers only', () => {
    const hub = new Hub();
    const received: string[] = [];
    hub.publishNotice('run-1', { event: 'note', data: 'too early' });
    expect(hub.hasNoticeListeners('run-1')).toBe(false);
    const unsubscribe = hub.onNotice('run-1', ({ data }) => received.push(data));
    hub.onNotice('run-2', ({ data }) => received.push(`other ${data}`));
    expect(hub.hasNoticeListeners('run-1')).toBe(true);
    hub.publishNotice('run-1', { event: 'note', data: 'now' });
    unsubscribe();
    hub.publishNotice('run-1', { event: 'note', data: 'too late' });
    expect(received).toEqual(['now']);
    expect(hub.hasNoticeListeners('run-1')).toBe(false);
  });

  it('passes on hints of other hosts by topic', () => {
    const received: string[] = [];
    const onHint = new Map([['topic', (subject: string) => received.push(`topic ${subject}`)]]);
    const hub = new Hub({ onAppend: [], onHint });
    hub.subscribe('run-1', () => received.push('run'));
    hub.onWork((workId) => received.push(`work ${workId}`));
    for (const hint of ['run:run-1', 'work:cancel-child:run-2', 'topic:a:b', 'unknown:x', '']) hub.receiveHint(hint);
    expect(received).toEqual(['run', 'work cancel-child:run-2', 'topic a:b']);
  });
});

const EVENT: StoredEvent = { sequence: 0, type: 'run.started', body: '{}', hidden: null };
