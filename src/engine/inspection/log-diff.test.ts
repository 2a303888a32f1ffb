import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ComparedEvent, compareEvents, type DiffBounds, LogDiff } from './log-diff.ts';

/** Goal: find where and how two logs differ, ignoring what differs between any two runs. */

const AMPLE: DiffBounds = { diffsMax: 1_000, charactersMax: 1_000_000 };

function event(type: string, payload: unknown, envelope: object = {}): ComparedEvent {
  return { type, body: JSON.stringify({ type, payload, ...envelope }) };
}

function diff(a: readonly ComparedEvent[], b: readonly ComparedEvent[], bounds = AMPLE): LogDiff {
  const result = new LogDiff(bounds);
  for (let seq = 0; seq < Math.max(a.length, b.length); seq++) result.add(seq, a[seq], b[seq]);
  return result;
}

const anEvent = (): fc.Arbitrary<ComparedEvent> =>
  fc
    .tuple(fc.constantFrom('node.started', 'node.completed', 'x.y'), fc.jsonValue({ maxDepth: 2 }))
    .map(([type, payload]) => event(type, payload));
const aLog = (): fc.Arbitrary<ComparedEvent[]> => fc.array(anEvent(), { maxLength: 12 });

describe('two events are equal', () => {
  it('whatever their ids, times and traces', () => {
    const payload = { nodeId: 'a', runId: 'run-1', writtenAt: '2026-01-01T00:00:00Z', transport: 'rest', traceId: 'x' };
    const other = { nodeId: 'a', runId: 'run-2', writtenAt: '2027-01-01T00:00:00Z', correlationId: 'c' };
    const a = event('x', payload, { eventId: 'evt-1', timestamp: 'then', causationId: 'evt-0' });
    const b = event('x', other, { eventId: 'evt-2', timestamp: 'now' });
    expect(compareEvents(a, b)).toBeUndefined();
  });

  it('whatever the order of members and the notation of numbers', () => {
    const a = { type: 'x', body: '{"payload":{"a":1.0,"b":{"c":[1e2],"d":null}}}' };
    const b = { type: 'x', body: '{"payload":{"b":{"d":null,"c":[100]},"a":1}}' };
    expect(compareEvents(a, b)).toBeUndefined();
  });
});

describe('two events differ', () => {
  it.each([
    ['in their type', event('x', {}), event('y', {})],
    ['in a member', event('x', { nodeId: 'a' }), event('x', { nodeId: 'b' })],
    ['in a member that one of them lacks', event('x', { a: null }), event('x', {})],
    ['in ids that the payload carries on purpose', event('x', { childRunId: 'a' }), event('x', { childRunId: 'b' })],
    ['in what nodes put out, whatever it is called', event('x', { o: { runId: 1 } }), event('x', { o: { runId: 2 } })],
    ['in the order of a list', event('x', [1, 2]), event('x', [2, 1])],
    ['in being text or a number', event('x', '1'), event('x', 1)],
    ['in being nothing or empty', event('x', null), event('x', {})],
  ])('%s', (_how, a, b) => {
    expect(compareEvents(a, b)).toBe('changed');
  });
});

describe('whatever the logs', () => {
  it('a log does not differ from itself', () => {
    fc.assert(
      fc.property(aLog(), (log) => {
        expect(diff(log, log)).toMatchObject({ divergedAtSeq: null, diffs: [], isTruncated: false });
      }),
    );
  });

  it('a log has additions compared with its prefix, from where the prefix ends', () => {
    fc.assert(
      fc.property(aLog(), fc.nat(12), (log, length) => {
        const prefix = log.slice(0, length);
        const { diffs, divergedAtSeq } = diff(prefix, log);
        expect(diffs.map(({ op }) => op)).toEqual(log.slice(prefix.length).map(() => 'added'));
        expect(divergedAtSeq).toBe(prefix.length < log.length ? prefix.length : null);
      }),
    );
  });

  it('with the logs swapped, added becomes removed and changed stays changed', () => {
    const mirrored = { added: 'removed', removed: 'added', changed: 'changed' } as const;
    fc.assert(
      fc.property(aLog(), aLog(), (a, b) => {
        const there = diff(a, b);
        const back = diff(b, a);
        expect(back.divergedAtSeq).toBe(there.divergedAtSeq);
        expect(back.diffs).toEqual(there.diffs.map(({ seq, op, a, b }) => ({ seq, op: mirrored[op], a: b, b: a })));
      }),
    );
  });

  it('the first difference is the point of divergence; the others follow in order, within both bounds', () => {
    fc.assert(
      fc.property(
        aLog(),
        aLog(),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 400 }),
        (a, b, most, size) => {
          const all = diff(a, b).diffs;
          const cut = diff(a, b, { diffsMax: most, charactersMax: size });
          expect(cut.divergedAtSeq).toBe(all[0]?.seq ?? null);
          expect(cut.diffs).toEqual(all.slice(0, cut.diffs.length));
          expect(cut.diffs.length).toBeLessThanOrEqual(most);
          expect(cut.isTruncated).toBe(cut.diffs.length < all.length);
        },
      ),
    );
  });

  it('one difference is kept, whatever its size', () => {
    const [a, b] = [event('x', 'a'.repeat(100)), event('x', 'b'.repeat(100))];
    expect(diff([a, a], [b, b], { diffsMax: 9, charactersMax: 10 })).toMatchObject({
      diffs: [{ seq: 0, op: 'changed' }],
      isTruncated: true,
    });
  });
});
