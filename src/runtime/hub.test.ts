import { describe, expect, it } from 'vitest';
import type { StoredEvent } from '../store/log.ts';
import { Hub } from './hub.ts';

describe('a hub', () => {
  it('tells those who follow a run, and nobody else', () => {
    const hub = new Hub();
    const heard: string[] = [];
    hub.follow('run-1', () => heard.push('one'));
    hub.follow('run-1', () => heard.push('two'));
    hub.follow('run-2', () => heard.push('other'));
    hub.tell('run-1');
    expect(heard).toEqual(['one', 'two']);
  });

  it('hands over the events where it has them', () => {
    const hub = new Hub();
    const heard: (readonly StoredEvent[] | undefined)[] = [];
    hub.follow('run-1', (events) => heard.push(events));
    hub.tell('run-1', [EVENT]);
    hub.tell('run-1');
    expect(heard).toEqual([[EVENT], undefined]);
  });

  it('stops telling those who have left', () => {
    const hub = new Hub();
    const heard: string[] = [];
    const leave = hub.follow('run-1', () => heard.push('one'));
    hub.follow('run-1', () => heard.push('two'));
    leave();
    hub.tell('run-1');
    expect(heard).toEqual(['two']);
  });

  it('lets somebody leave while it tells', () => {
    const hub = new Hub();
    const heard: string[] = [];
    const leave = hub.follow('run-1', () => {
      heard.push('one');
      leave();
    });
    hub.follow('run-1', () => heard.push('two'));
    hub.tell('run-1');
    hub.tell('run-1');
    expect(heard).toEqual(['one', 'two', 'two']);
  });

  it('does not mind somebody who leaves twice, also when another has come meanwhile', () => {
    const hub = new Hub();
    const heard: string[] = [];
    const leave = hub.follow('run-1', () => heard.push('gone'));
    leave();
    hub.follow('run-1', () => heard.push('new'));
    leave();
    hub.tell('run-1');
    expect(heard).toEqual(['new']);
    expect(hub.followed).toBe(1);
  });

  it('knows how many runs are followed, and forgets those that nobody follows', () => {
    const hub = new Hub();
    const leave = [hub.follow('run-1', () => {}), hub.follow('run-1', () => {}), hub.follow('run-2', () => {})];
    expect(hub.followed).toBe(2);
    for (const each of leave) each();
    expect(hub.followed).toBe(0);
  });

  it('tells nobody of runs that nobody follows', () => {
    expect(() => new Hub().tell('run-1')).not.toThrow();
  });

  it('calls every worker, with the work and when it is due', () => {
    const hub = new Hub();
    const calls: [string, number | undefined][] = [];
    const leave = hub.onWork((workId, dueAt) => calls.push([workId, dueAt]));
    hub.callToWork('run-1');
    hub.callToWork('run-2', 99);
    leave();
    hub.callToWork('run-3');
    expect(calls).toEqual([
      ['run-1', undefined],
      ['run-2', 99],
    ]);
  });

  it('passes on what is said about a run to those who listen, and to nobody later', () => {
    const hub = new Hub();
    const heard: string[] = [];
    hub.notice('run-1', { event: 'said', data: 'too early' });
    expect(hub.isNoticed('run-1')).toBe(false);
    const leave = hub.onNotice('run-1', ({ data }) => heard.push(data));
    hub.onNotice('run-2', ({ data }) => heard.push(`other ${data}`));
    expect(hub.isNoticed('run-1')).toBe(true);
    hub.notice('run-1', { event: 'said', data: 'now' });
    leave();
    hub.notice('run-1', { event: 'said', data: 'too late' });
    expect(heard).toEqual(['now']);
    expect(hub.isNoticed('run-1')).toBe(false);
  });

  it('brings the hints of other hosts to whom they are about', () => {
    const hub = new Hub();
    const heard: string[] = [];
    hub.follow('run-1', () => heard.push('run'));
    hub.onWork((workId) => heard.push(`work ${workId}`));
    hub.onHint('word', (about) => heard.push(`word ${about}`));
    for (const topic of ['run:run-1', 'work:cancel-child:run-2', 'word:a:b', 'unknown:x', '']) hub.hinted(topic);
    expect(heard).toEqual(['run', 'work cancel-child:run-2', 'word a:b']);
  });
});

const EVENT: StoredEvent = { sequence: 0, type: 'run.started', body: '{}', hidden: null };
