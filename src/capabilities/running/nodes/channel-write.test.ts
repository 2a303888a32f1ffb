import { describe, expect, it } from 'vitest';
import { configProblems, run } from '../../../../test/support/node-context.ts';

describe('core.channelWrite', () => {
  const config = { channelName: 'events', reducer: 'append', value: 'x' };

  it('writes the value of its config', () => {
    expect(run('core.channelWrite', { config })).toEqual({
      done: { channels: [{ channel: 'events', reducer: 'append', value: 'x', ttlMs: undefined }] },
    });
  });

  it('prefers the value of its input, and writes null where it has none', () => {
    expect(run('core.channelWrite', { config, declared: { value: 0 } })).toMatchObject({
      done: { channels: [{ value: 0 }] },
    });
    const { value: _value, ...without } = config;
    expect(run('core.channelWrite', { config: without })).toMatchObject({ done: { channels: [{ value: null }] } });
  });

  it('says how long an entry lives', () => {
    expect(run('core.channelWrite', { config: { ...config, ttlMs: 200 } })).toMatchObject({
      done: { channels: [{ ttlMs: 200 }] },
    });
  });

  it.each([
    [{}, 'nothing'],
    [{ channelName: 'events' }, 'no reducer'],
    [{ reducer: 'append' }, 'no channel'],
    [{ ...config, channelName: '' }, 'an empty name'],
    [{ ...config, reducer: 'vendor.acme.special' }, 'a reducer that nobody knows'],
    [{ ...config, reducer: 'constructor' }, 'a reducer that is none'],
    [{ ...config, ttlMs: -1 }, 'a negative time'],
    [{ ...config, ttlMs: 31_536_000_001 }, 'more than a year'],
    [{ ...config, maxSize: 0 }, 'no room'],
  ] as [object, string][])('is refused with %j: %s', (given, _why) => {
    expect(configProblems('core.channelWrite', { ...given })).not.toEqual([]);
  });

  it.each(['replace', 'append', 'merge', 'counter', 'votes', 'feedback', 'message'])(
    'may name the reducer %s',
    (reducer) => {
      expect(configProblems('core.channelWrite', { ...config, reducer })).toEqual([]);
    },
  );

  it('takes no time to live as none', () => {
    expect(configProblems('core.channelWrite', { ...config, ttlMs: 0, maxSize: 5 })).toEqual([]);
  });
});
