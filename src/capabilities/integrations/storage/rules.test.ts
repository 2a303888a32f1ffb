import { describe, expect, it } from 'vitest';
import { KV_LIMITS } from '../../../runtime/effects/kv.ts';
import type { EntryRow } from './records.ts';
import { checkKeys, decideEntry } from './rules.ts';

const place = { tenant: 'alpha', workspace: '', namespace: 'n', key: 'k' };
const at = { namespace: 'n', key: 'k' };
const holding = (value: unknown, remaining_ms: number | null = null): EntryRow => ({
  entry_key: 'k',
  value: JSON.stringify(value),
  version: 3,
  remaining_ms,
});

describe('a storage request', () => {
  it('replaces the row of an expired entry as if there were no value', () => {
    const expired = holding(7, 0);
    expect(decideEntry(place, expired, { op: 'get', ...at })).toEqual({ result: { found: false } });
    const { result, write, isNew } = decideEntry(place, expired, { op: 'increment', ...at, delta: 2 });
    expect(result).toEqual({ value: 2, previous: 0 });
    expect(isNew).toBe(false);
    expect(write!.params).toContain(3);
  });

  it.each([
    ['a value that is expected', holding({ a: [1] }), { a: [1] }, { swapped: true }],
    ['another value', holding({ a: [2] }), { a: [1] }, { swapped: false, actual: { a: [2] } }],
    ['null where there is a value', holding(null), null, { swapped: false, actual: null }],
    ['no value where none is expected', undefined, null, { swapped: true }],
  ])('compares and swaps: %s', (_case, row, expected, result) => {
    const decision = decideEntry(place, row, { op: 'cas', ...at, expect: expected, set: 1 });
    expect(decision.result).toEqual(result);
    expect(decision.write !== undefined).toBe(result.swapped);
  });

  it('that cannot be met fails the node for good', () => {
    const increment = { op: 'increment', ...at, delta: 1 } as const;
    expect(() => decideEntry(place, holding('text'), increment)).toThrow('not a whole number');
    expect(() => decideEntry(place, holding(Number.MAX_SAFE_INTEGER), increment)).toThrow('too large');
    const value = 'x'.repeat(KV_LIMITS.valueBytes);
    expect(() => decideEntry(place, undefined, { op: 'set', ...at, value })).toThrow('bytes');
    expect(() => checkKeys({ op: 'get', namespace: 'n', key: 'a\u0000b' })).toThrow('control characters');
    expect(() => checkKeys({ op: 'get', namespace: 'n', key: 'k'.repeat(513) })).toThrow('512 bytes');
  });
});
