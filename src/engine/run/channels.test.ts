import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { node } from '../../../test/support/definitions.ts';
import type { ChannelDeclaration } from '../../protocol/running/workflows.ts';
import {
  type ChannelOptions,
  initialState,
  isKnownReducer,
  mayAccess,
  overflows,
  reduceWrite,
  takesTtl,
} from './channels.ts';

describe('reducers', () => {
  it.each([
    ['replace', undefined],
    ['append', []],
    ['merge', {}],
    ['counter', 0],
    ['votes', []],
    ['feedback', []],
    ['message', []],
  ])('%s begins with %j', (reducer, empty) => {
    expect(initialState(reducer, {})).toEqual(empty);
  });

  it('start with a copy of the default of the channel', () => {
    const options = { default: ['first'] };
    const state = initialState('append', options) as string[];
    state.push('second');
    expect(initialState('append', options)).toEqual(['first']);
  });

  it('replace: the last value wins', () => {
    expect(written('replace', [1, null, { a: 1 }])).toEqual({ a: 1 });
    expect(written('replace', [1, null])).toBeNull();
  });

  it('never change a value that was written', () => {
    const values = [[1], { a: 1 }] as const;
    let state: unknown;
    for (const [reducer, value] of [
      ['replace', values[0]],
      ['append', 2],
      ['replace', values[1]],
      ['merge', { b: 2 }],
    ] as const) {
      state = reduceWrite(state, { reducer, value, now: 0 }, {});
    }
    expect(state).toEqual({ a: 1, b: 2 });
    expect(values).toEqual([[1], { a: 1 }]);
  });

  it('merge: a member may have any name', () => {
    const state = written('merge', [JSON.parse('{"__proto__":{"a":1},"constructor":2}'), { c: 3 }]);
    expect(JSON.stringify(state)).toBe('{"__proto__":{"a":1},"constructor":2,"c":3}');
    expect(Object.getPrototypeOf(state)).toBe(Object.prototype);
  });

  it('append: values in order of writing', () => {
    expect(written('append', [1, [2], null])).toEqual([1, [2], null]);
  });

  it('merge: members, one level deep, later ones win', () => {
    expect(written('merge', [{ a: { x: 1 }, b: 1 }, { a: { y: 2 } }])).toEqual({ a: { y: 2 }, b: 1 });
  });

  it.each([null, 'text', 7, ['list']])('merge: %j has no members', (value) => {
    expect(written('merge', [{ a: 1 }, value])).toEqual({ a: 1 });
  });

  it('counter: sums, down as well as up', () => {
    expect(written('counter', [5, -7, 0.5])).toBe(-1.5);
    expect(written('counter', [1, 'two', null])).toBe(1);
  });

  it('votes: the last vote of each user, in the order of those votes', () => {
    const vote = (userId: string, action: string) => ({ userId, action });
    expect(written('votes', [vote('ada', 'yes'), vote('bob', 'no'), vote('ada', 'no')])).toEqual([
      vote('bob', 'no'),
      vote('ada', 'no'),
    ]);
  });

  it('votes: votes without a user are never merged', () => {
    expect(written('votes', [{ action: 'yes' }, { action: 'no' }])).toHaveLength(2);
  });

  it('feedback: every entry counts', () => {
    expect(written('feedback', [{ feedback: 'x' }, { feedback: 'x' }])).toHaveLength(2);
  });

  it('message: the first with each id', () => {
    const message = (messageId: string, content: string) => ({ messageId, content });
    expect(written('message', [message('1', 'a'), message('2', 'b'), message('1', 'again')])).toEqual([
      message('1', 'a'),
      message('2', 'b'),
    ]);
  });

  it('of vendors act like replace', () => {
    expect(written('vendor.acme.special', [1, 2])).toBe(2);
    expect(isKnownReducer('vendor.acme.special')).toBe(false);
  });

  it.each(['constructor', '__proto__', 'toString'])('called %s are unknown like any other', (reducer) => {
    expect(isKnownReducer(reducer)).toBe(false);
    expect(takesTtl(reducer)).toBe(false);
    expect(written(reducer, [1, 2])).toBe(2);
  });

  it('of lists replace a state that is not a list', () => {
    expect(reduceWrite('not a list', { reducer: 'append', value: 1, now: 0 }, {})).toEqual([1]);
  });
});

describe('a TTL', () => {
  const timed = (value: unknown, _ts: number) => ({ value, _ts });
  const write = (state: unknown, entry: { value: unknown; _ts: number }, options: ChannelOptions, reducer = 'append') =>
    reduceWrite(state, { reducer, value: entry, now: entry._ts }, options);

  it.each(['append', 'votes', 'feedback'])('is supported by %s', (reducer) => {
    expect(takesTtl(reducer)).toBe(true);
  });

  it.each(['replace', 'merge', 'counter', 'message'])('is not supported by %s', (reducer) => {
    expect(takesTtl(reducer)).toBe(false);
  });

  it('keeps an entry that is exactly as old as allowed and drops an older one', () => {
    const state = [timed('old', 99), timed('edge', 100), timed('new', 150)];
    expect(write(state, timed('now', 200), { ttlMs: 100 })).toEqual([
      timed('edge', 100),
      timed('new', 150),
      timed('now', 200),
    ]);
  });

  it('is measured by the time of the folded write, not by a clock', () => {
    let state: unknown = [];
    for (const [value, time] of [
      ['a', 0],
      ['b', 50],
      ['c', 200],
      ['d', 1_000],
    ] as const) {
      state = write(state, timed(value, time), { ttlMs: 100 });
    }
    expect(state).toEqual([timed('d', 1_000)]);
  });

  it('stores entries with their time, and bare values without a TTL', () => {
    expect(written('append', ['x'])).toEqual(['x']);
    expect(write([], timed('x', 5), { ttlMs: 10 })).toEqual([timed('x', 5)]);
  });

  it('drops expired entries after a live one too: the clocks of hosts differ', () => {
    const state = [timed('fresh', 190), timed('stale', 10)];
    expect(write(state, timed('now', 200), { ttlMs: 100 })).toEqual([timed('fresh', 190), timed('now', 200)]);
  });

  it('drops expired entries after default entries too', () => {
    const state = ['from the start', timed('stale', 10)];
    expect(write(state, timed('now', 200), { ttlMs: 100 })).toEqual(['from the start', timed('now', 200)]);
  });

  it('is applied before the size limit', () => {
    const state = [timed('stale', 0), timed('a', 150), timed('b', 160)];
    expect(write(state, timed('c', 200), { ttlMs: 100, maxSize: 3 })).toEqual([
      timed('a', 150),
      timed('b', 160),
      timed('c', 200),
    ]);
  });

  it('recognizes the user of a vote inside a timed entry', () => {
    const vote = (userId: string, action: string, time: number) => timed({ userId, action }, time);
    const state = write([vote('ada', 'yes', 1)], vote('ada', 'no', 2), { ttlMs: 100 }, 'votes');
    expect(state).toEqual([vote('ada', 'no', 2)]);
  });
});

describe('the size of a channel', () => {
  it.each(['append', 'feedback', 'votes', 'message'])('%s drops its oldest entries', (reducer) => {
    const entry = (id: number) => ({ messageId: `${id}`, userId: `${id}` });
    const state = [1, 2, 3].reduce<unknown>(
      (before, id) => reduceWrite(before, { reducer, value: entry(id), now: 0 }, { maxSize: 2 }),
      [],
    );
    expect(state).toEqual([entry(2), entry(3)]);
    expect(overflows(state, reducer, entry(4), 2)).toBe(false);
  });

  it('merge refuses members beyond the limit', () => {
    expect(overflows({ a: 1 }, 'merge', { b: 2 }, 2)).toBe(false);
    expect(overflows({ a: 1 }, 'merge', { a: 2 }, 1)).toBe(false);
    expect(overflows({ a: 1 }, 'merge', { b: 2 }, 1)).toBe(true);
  });

  it('replace refuses a value with too many members', () => {
    expect(overflows(undefined, 'replace', { a: 1, b: 2 }, 1)).toBe(true);
  });

  it('replace refuses a list that is too long instead of truncating it', () => {
    expect(overflows(undefined, 'replace', [1, 2, 3], 2)).toBe(true);
    expect(overflows(undefined, 'replace', [1, 2], 2)).toBe(false);
  });

  it('counter has no size', () => {
    expect(overflows(5, 'counter', 100, 1)).toBe(false);
  });

  it('is unbounded by default', () => {
    expect(overflows({ a: 1 }, 'merge', { b: 2 }, undefined)).toBe(false);
  });
});

describe('access to a channel', () => {
  const may = (access: ChannelDeclaration['access'] | undefined, id: string, typeId = 'core.ai.callPrompt') =>
    (['readers', 'writers'] as const).map((side) =>
      mayAccess({ reducer: 'append', ...(access === undefined ? {} : { access }) }, node(id, typeId), side),
    );

  it('is open by default, and for undeclared channels', () => {
    expect(may(undefined, 'n')).toEqual([true, true]);
    expect(may('public', 'n')).toEqual([true, true]);
    expect(mayAccess(undefined, node('n'), 'writers')).toBe(true);
  });

  it('is closed to all if it is private', () => {
    expect(may('private', 'n')).toEqual([false, false]);
  });

  it('is open without a list and closed with an empty list', () => {
    expect(may({ readers: [] }, 'n')).toEqual([false, true]);
    expect(may({ writers: [] }, 'n')).toEqual([true, false]);
    expect(may({}, 'n')).toEqual([true, true]);
  });

  it.each([
    ['*', true],
    ['n', true],
    ['m', false],
    ['core.ai.*', true],
    ['core.*', true],
    ['core.agent.*', false],
    ['core.ai.callPrompt.*', false],
    ['core.aix.*', false],
    ['n*', false],
  ])('of node n of type core.ai.callPrompt by the entry %s: %s', (entry, expected) => {
    expect(may({ readers: [entry], writers: ['*'] }, 'n')).toEqual([expected, true]);
  });
});

describe('whatever the batches in which writes are folded', () => {
  it('the state is the same', () => {
    fc.assert(
      fc.property(writes(), fc.array(fc.boolean()), fc.option(fc.integer({ min: 1, max: 4 })), (log, cuts, maxSize) => {
        const options: ChannelOptions = { ttlMs: 50, ...(maxSize === null ? {} : { maxSize }) };
        const { reducer } = log;
        const fold = (state: unknown, part: typeof log.entries): unknown =>
          part.reduce((before, { value, now }) => reduceWrite(before, { reducer, value, now }, options), state);
        const whole = fold(initialState(reducer, options), structuredClone(log.entries));
        // Between two batches the state may be serialized and read again.
        const inParts = batches(log.entries, cuts).reduce<unknown>(
          (state, part) => fold(structuredClone(state), part),
          initialState(reducer, options),
        );
        expect(inParts).toEqual(whole);
      }),
      { numRuns: 300 },
    );
  });

  it('no entry exceeds its TTL and no list its size', () => {
    fc.assert(
      fc.property(writes(), fc.integer({ min: 1, max: 5 }), ({ reducer, entries }, maxSize) => {
        const options: ChannelOptions = { ttlMs: 50, maxSize };
        let state = initialState(reducer, options);
        for (const { value, now } of entries) {
          state = reduceWrite(state, { reducer, value, now }, options);
          if (!Array.isArray(state) || !takesTtl(reducer)) continue;
          expect(state.length).toBeLessThanOrEqual(maxSize);
          for (const entry of state as { _ts: number }[]) expect(entry._ts).toBeGreaterThanOrEqual(now - 50);
        }
      }),
      { numRuns: 300 },
    );
  });
});

/** The state after writing these values in order. */
function written(reducer: string, values: readonly unknown[], options: ChannelOptions = {}): unknown {
  return values.reduce(
    (state, value) => reduceWrite(state, { reducer, value, now: 0 }, options),
    initialState(reducer, options),
  );
}

function writes() {
  const value = fc.oneof(
    fc.integer({ min: -3, max: 3 }),
    fc.record({ userId: fc.constantFrom('ada', 'bob'), messageId: fc.constantFrom('1', '2', '3'), text: fc.string() }),
  );
  const steps = fc.array(fc.tuple(value, fc.integer({ min: 0, max: 40 })), { maxLength: 12 });
  return fc
    .tuple(fc.constantFrom('replace', 'append', 'merge', 'counter', 'votes', 'feedback', 'message'), steps)
    .map(([reducer, parts]) => {
      let now = 0;
      const entries = parts.map(([given, later]) => {
        now += later;
        return { value: takesTtl(reducer) ? { value: given, _ts: now } : given, now };
      });
      return { reducer, entries };
    });
}

function batches<T>(items: readonly T[], cuts: readonly boolean[]): T[][] {
  const parts: T[][] = [[]];
  for (const [index, item] of items.entries()) {
    parts.at(-1)!.push(item);
    if (cuts[index]) parts.push([]);
  }
  return parts;
}
