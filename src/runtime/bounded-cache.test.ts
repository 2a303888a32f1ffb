import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BoundedCache } from './bounded-cache.ts';

describe('a cache', () => {
  it('gives an entry that was used a second chance', () => {
    const cache = new BoundedCache<string, number>(2);
    cache.set('a', 1);
    cache.set('b', 2);
    cache.get('a');
    cache.set('c', 3);
    expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual([1, undefined, 3]);
    expect(cache.size).toBe(2);
  });

  it('replaces the value of a key, and counts its weight once', () => {
    const cache = new BoundedCache<string, string>(10, (text) => text.length);
    cache.set('a', 'xxxxxx');
    cache.set('a', 'yyyyyy');
    cache.set('b', 'zzzz');
    expect([cache.get('a'), cache.get('b')]).toEqual(['yyyyyy', 'zzzz']);
  });

  it('evicts several light entries for a heavy one', () => {
    const cache = new BoundedCache<string, number>(10, (weight) => weight);
    for (const key of ['a', 'b', 'c']) cache.set(key, 3);
    cache.set('heavy', 8);
    expect(['a', 'b', 'c', 'heavy'].map((key) => cache.get(key))).toEqual([undefined, undefined, undefined, 8]);
  });

  it('keeps a single value above the limit until another is stored', () => {
    const cache = new BoundedCache<string, number>(10, (weight) => weight);
    cache.set('huge', 100);
    expect(cache.get('huge')).toBe(100);
    cache.set('small', 1);
    expect([cache.get('huge'), cache.get('small')]).toEqual([undefined, 1]);
  });

  it('deletes an entry, and ignores keys that it does not have', () => {
    const cache = new BoundedCache<string, number>(2);
    cache.set('a', 1);
    cache.delete('a');
    cache.delete('a');
    cache.delete('never');
    cache.set('b', 2);
    cache.set('c', 3);
    expect(cache.size).toBe(2);
  });

  it('evicts what was not used, oldest first, before anything that was', () => {
    const weights = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(weights, fc.array(fc.nat(11)), fc.integer({ min: 1, max: 30 }), (stored, reads, newest) => {
        const room = stored.reduce((sum, weight) => sum + weight, 0);
        const cache = new BoundedCache<number, number>(room, (weight) => weight);
        stored.forEach((weight, key) => {
          cache.set(key, weight);
        });
        for (const key of reads) cache.get(key);
        cache.set(-1, newest);

        const keys = [...stored.keys()];
        const inTurn = [...keys.filter((key) => !reads.includes(key)), ...keys.filter((key) => reads.includes(key))];
        for (let left = room + newest; left > room && inTurn.length > 0; ) left -= stored[inTurn.shift()!]!;
        expect(keys.filter((key) => cache.get(key) !== undefined)).toEqual(inTurn.toSorted((a, b) => a - b));
        expect([cache.get(-1), cache.size]).toEqual([newest, inTurn.length + 1]);
      }),
    );
  });

  it('has what was stored last, and stays within its limit', () => {
    const move = fc.tuple(
      fc.constantFrom('get', 'set', 'delete'),
      fc.constantFrom(...'abcde'),
      fc.integer({ min: 1, max: 6 }),
    );
    fc.assert(
      fc.property(fc.array(move, { maxLength: 60 }), (moves) => {
        const cache = new BoundedCache<string, number>(8, (weight) => weight);
        const stored = new Map<string, number>();
        for (const [what, key, weight] of moves) {
          if (what === 'get') expect([stored.get(key), undefined]).toContain(cache.get(key));
          else if (what === 'delete') {
            cache.delete(key);
            stored.delete(key);
          } else {
            cache.set(key, weight);
            stored.set(key, weight);
            expect(cache.get(key)).toBe(weight);
          }
        }
        const left = [...stored.keys()].map((key) => cache.get(key)).filter((weight) => weight !== undefined);
        expect(left.length).toBe(cache.size);
        expect(left.length <= 1 || left.reduce((sum, weight) => sum + weight) <= 8).toBe(true);
      }),
    );
  });
});
