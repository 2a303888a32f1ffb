import { describe, expect, it } from 'vitest';
import { harms, measuresOf, overall, type WindowFigures } from './measures.ts';
import { fisherExact, permutationTest } from './significance.ts';

const window = (figures: Partial<WindowFigures>): WindowFigures => ({
  runs: 20,
  failed: 0,
  corrected: 0,
  ratings: [],
  costs: [],
  ...figures,
});
const named = (name: string, before: Partial<WindowFigures>, after: Partial<WindowFigures>) =>
  measuresOf(window(before), window(after)).find((measure) => measure.name === name)!;

describe('the chance of a difference', () => {
  it.each([
    // Computed with another implementation of the test.
    [7, 20, 1, 22, 0.0183],
    [1, 10, 9, 10, 0.0011],
    [3, 10, 3, 10, 1],
    [0, 5, 5, 5, 0.0079],
    [0, 0, 0, 4, 1],
  ])('%i of %i against %i of %i is that of Fisher', (a, ofA, b, ofB, p) => {
    expect(fisherExact(a, ofA, b, ofB)).toBeCloseTo(p, 3);
  });

  it('is small for means far apart, large for equal ones, and the same each time', () => {
    const [low, high] = [
      [1, 2, 1, 2, 1, 2],
      [4, 5, 4, 5, 5, 4],
    ];
    expect(permutationTest(low, high)).toBeLessThan(0.01);
    expect(permutationTest(low, low)).toBe(1);
    expect(permutationTest(low, high)).toBe(permutationTest(low, high));
  });

  it('is found with fewer shuffles in large groups, and is still small enough to act on', () => {
    const [small, large] = [10, 500].map((size) => permutationTest(Array(size).fill(1), Array(size).fill(5)));
    // The smallest chance that a test can find is one in its shuffles and the order that was seen.
    expect(1 / large!).toBeLessThanOrEqual(401);
    expect(large).toBeLessThan(0.01);
    expect(small).toBeLessThan(0.001);
  });
});

describe('what changed', () => {
  it('is said in words, with the counts and the chance', () => {
    const { sentence, verdict } = named('corrections', { corrected: 7 }, { runs: 22, corrected: 1 });
    expect(sentence).toBe('fewer corrections: 7 of 20 before, 1 of 22 after; unlikely to be chance (p 0.018)');
    expect(verdict).toBe('better');
  });

  it('is not said of few runs, nor of what chance may do', () => {
    expect(named('failures', { runs: 3, failed: 3 }, {})).toMatchObject({
      verdict: 'too-few',
      sentence: 'failures: too few runs to tell (3 of 3 before, 0 of 20 after)',
    });
    expect(named('failures', { failed: 2 }, { failed: 3 })).toMatchObject({
      verdict: 'unclear',
      sentence: expect.stringContaining('may well be chance'),
    });
  });

  it('goes by what is good: low ratings are worse, low costs are better', () => {
    const [low, high] = [Array.from({ length: 8 }, (_, at) => 1 + (at % 2)), Array.from({ length: 8 }, () => 5)];
    expect(named('ratings', { ratings: high }, { ratings: low })).toMatchObject({ verdict: 'worse' });
    expect(named('ratings', { ratings: high }, { ratings: low }).sentence).toMatch(/^lower ratings: 5 on average of 8/);
    expect(named('cost', { costs: high }, { costs: low }).sentence).toMatch(/^lower cost: \$5 on average of 8 before/);
    expect(named('cost', { costs: [0, 0] }, { costs: [0] })).toBeUndefined();
  });

  it('is worse as a whole if anything but the cost is, and harm only if that is sure', () => {
    const worse = measuresOf(window({ failed: 0 }), window({ failed: 8 }));
    expect([overall(worse), harms(worse).map(({ name }) => name)]).toEqual(['worse', ['failures']]);
    const unsure = measuresOf(window({ failed: 0 }), window({ failed: 6 }));
    expect([overall(unsure), harms(unsure)]).toEqual(['worse', []]);
    const costly = Array.from({ length: 10 }, () => 1);
    const dear = measuresOf(window({ costs: costly }), window({ costs: costly.map(() => 9) }));
    expect([overall(dear), harms(dear)]).toEqual(['unclear', []]);
    expect(overall(measuresOf(window({ runs: 1 }), window({ runs: 1 })))).toBe('too-few');
  });
});
