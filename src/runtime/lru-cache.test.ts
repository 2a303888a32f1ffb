import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LruCache } from './lru-cache.ts';

describe('a cache', () => {
  it('evicts the least recently used entry', () => {
    const cache = new LruCache<string, number>(2);
    cache.set('a', 1);
    cache.set('b', 2);
    cache.get('a');
    cache.set('c', 3);
    expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual([1, undefined, 3]);
    expect(cache.size).toBe(2);
  });

  it('replaces the value of a key, and counts its weight once', () => {
    const cache = new LruCache<string, string>(10, (text) => text.length);
    cache.set('a', 'xxxxxx');
    cache.set('a', 'yyyyyy');
    cache.set('b', 'zzzz');
    expect([cache.get('a'), cache.get('b')]).toEqual(['yyyyyy', 'zzzz']);
  });

  it('evicts several light entries for a heavy one', () => {
    const cache = new LruCache<string, number>(10, (weight) => weight);
    for (const key of ['a', 'b', 'c']) cache.set(key, 3);
    cache.set('heavy', 8);
    expect(['a', 'b', 'c', 'heavy'].map((key) => cache.get(key))).toEqual([undefined, undefined, undefined, 8]);
  });

  it('keeps a single value above the limit until another is stored', () => {
    const cache = new LruCache<string, number>(10, (weight) => weight);
    cache.set('huge', 100);
    expect(cache.get('huge')).toBe(100);
    cache.set('small', 1);
    expect([cache.get('huge'), cache.get('small')]).toEqual([undefined, 1]);
  });

  it('deletes an entry, and ignores keys that it does not have', () => {
    const cache = new LruCache<string, number>(2);
    cache.set('a', 1);
    cache.delete('a');
    cache.delete('a');
    cache.delete('never');
    cache.set('b', 2);
    cache.set('c', 3);
    expect(cache.size).toBe(2);
  });

  it('behaves like a list in the order of use', () => {
    const move = fc.tuple(
      fc.constantFrom('get', 'set', 'delete'),
      fc.constantFrom(...'abcde'),
      fc.integer({ min: 1, max: 6 }),
    );
    fc.assert(
      fc.property(fc.array(move, { maxLength: 60 }), (moves) => {
        const cache = new LruCache<string, number>(8, (weight) => weight);
        let model: [string, number][] = [];
        const without = (key: string) => model.filter(([other]) => other !== key);
        for (const [what, key, weight] of moves) {
          const known = model.find(([other]) => other === key);
          if (what === 'get') {
            expect(cache.get(key)).toBe(known?.[1]);
            if (known) model = [...without(key), known];
          } else if (what === 'delete') {
            cache.delete(key);
            model = without(key);
          } else {
            cache.set(key, weight);
            model = [...without(key), [key, weight]];
            while (model.length > 1 && model.reduce((sum, [, each]) => sum + each, 0) > 8) model = model.slice(1);
          }
          expect(cache.size).toBe(model.length);
        }
      }),
    );
  });
});
