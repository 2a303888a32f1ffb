import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isMemoryRef, mergesOf, rank } from './rules.ts';

describe('a reference', () => {
  it.each([
    ['customers/A-1', true],
    ['mem://support/agent', true],
    ['', false],
    ['a/../b', false],
    ['a\0b', false],
    ['a\nb', false],
    ['x'.repeat(257), false],
  ])('%j names a memory: %s', (text, isOne) => {
    expect(isMemoryRef(text)).toBe(isOne);
  });
});

describe('words', () => {
  it('decide what comes first, and what does not come at all', () => {
    const entries = ['one', 'two one', 'three'].map((content) => ({ content, tags: '[]' }));
    expect(rank(entries, 'ONE two').map(({ content }) => content)).toEqual(['two one', 'one']);
    expect(rank(entries, '!')).toEqual([]);
  });
});

describe('a pass over a memory', () => {
  const entry = fc.record({
    content: fc.constantFrom('Likes tea.', 'likes  tea', 'LIKES TEA!', 'Likes coffee', 'likes coffee.', 'Is tall'),
    tags: fc.uniqueArray(fc.constantFrom('a', 'b', 'c')).map((tags) => JSON.stringify(tags)),
    expires_at: fc.option(fc.integer({ min: 1, max: 9 })),
  });

  it('keeps everything that is known, once, and finds nothing more to do', () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 12 }), (entries) => {
        const merges = mergesOf(entries);
        const gone = new Set(merges.flatMap(({ merged }) => merged));
        const left = entries
          .filter((each) => !gone.has(each))
          .map((each) => merges.find(({ kept }) => kept.content === each.content)?.kept ?? each);
        expect(mergesOf(left)).toEqual([]);
        const tagsOf = (list: typeof entries) => new Set(list.flatMap(({ tags }) => JSON.parse(tags) as string[]));
        expect(tagsOf(left)).toEqual(tagsOf(entries));
        expect(left.filter(({ expires_at }) => expires_at === null).length).toBeGreaterThanOrEqual(
          entries.some(({ expires_at }) => expires_at === null) ? 1 : 0,
        );
      }),
    );
  });
});
