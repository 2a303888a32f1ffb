import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { similarity, sketchOf } from './similarity.ts';

const alike = (one: unknown, other: unknown): number => similarity(sketchOf(one), sketchOf(other));

const TEXT = 'Write a short report on the weather of the week, in five points, and name the source of each of them.';

describe('similarity', () => {
  it('ranks what is nearly the same above what is related above what is not', () => {
    const nearly = alike({ text: TEXT }, { text: TEXT.replace('five', 'six') });
    const related = alike({ text: TEXT }, { text: 'Write a short report on the weather of the year.' });
    const unrelated = alike({ text: TEXT }, { text: 'Sort tickets by urgency, and ask a person when in doubt.' });
    expect(nearly).toBeGreaterThan(0.6);
    expect(nearly).toBeGreaterThan(related);
    expect(related).toBeGreaterThan(unrelated);
    expect(unrelated).toBeLessThan(0.1);
  });

  it('sees the order of things', () => {
    expect(alike(['fetch', 'sum', 'send'], ['send', 'sum', 'fetch'])).toBeLessThan(0.85);
  });

  it('of what is larger than a sketch is about right', () => {
    const words = (from: number, count: number): string =>
      Array.from({ length: count }, (_, index) => `w${from + index}`).join(' ');
    // Half of what either has is in both: a third of what there is altogether.
    expect(alike(words(0, 20_000), words(10_000, 20_000))).toBeCloseTo(1 / 3, 1);
  });

  it('is 1 for what is the same, however its keys are ordered, and the same both ways', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        expect(alike(one, one)).toBe(1);
        expect(alike(one, other)).toBe(alike(other, one));
        expect(alike(one, other)).toBeGreaterThanOrEqual(0);
        expect(alike(one, other)).toBeLessThanOrEqual(1);
      }),
    );
    expect(alike({ a: 1, b: 'x' }, { b: 'x', a: 1 })).toBe(1);
  });
});
