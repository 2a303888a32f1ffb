import { describe, expect, it } from 'vitest';
import { BoundedMatcher, compilePattern, matchBounded, patternCost } from './pattern.ts';

describe('a pattern', () => {
  it.each(['x{900}', '(x{100}){9}', '[a-z]{1,450}', '(ab|c){2,100}', '\\d{4}-\\d{2}'])('may be %s', (source) => {
    expect(compilePattern(source).size).toBeLessThanOrEqual(1_000);
  });

  it.each([
    'x{1000}x{1000}x{1000}',
    `(${'ab'.repeat(200)}){1000}`,
    `(${'[a-z]'.repeat(50)}){100}`,
    '((a?){50}){20}',
    'x{1000}'.repeat(140),
    `(?i)${'\\pL'.repeat(60)}`,
    `[${'\\p{Lu}'.repeat(60)}]`,
    '(?i)[b-\\x{10ffff}c-\\x{10ffff}d-\\x{10ffff}]',
    `(?s)a(?si)${'[\u00e0-\uffff]'.repeat(5)}`,
    `(?i)${'[\\101-\\x{ffff}]'.repeat(5)}`,
  ])('is refused if its program is large: %s', (source) => {
    expect(() => compilePattern(source)).toThrow(/too complex/);
  });

  it.each(['(?i)^[a-zà-ÿ]+$', '^[\\p{L}\\p{N} .-]{1,64}$', '(?i)\\x{41}-\\x{5a}|\\Q[a-\\E', '[b-\\x{10ffff}]{300}'])(
    'may have classes: %s',
    (source) => {
      expect(compilePattern(source).cost).toBeLessThan(500);
    },
  );

  it('has a cost that takes no longer to find than its length', () => {
    expect(patternCost('['.repeat(2_000))).toBe(2_000);
    expect(patternCost('('.repeat(1_000_000))).toBe(1_000_000);
    expect(() => compilePattern('('.repeat(2_001))).toThrow(/longer than 2000/);
  });

  it('is matched only with texts that it can read in bounded time', () => {
    const pattern = compilePattern('^(a|b)*c$');
    expect(matchBounded(pattern, `${'ab'.repeat(20_000)}c`)).toBe(true);
    expect(() => matchBounded(pattern, 'ab'.repeat(500_000))).toThrow(/too long for the pattern/);
  });

  it('is one of many in a step, which are bounded together', () => {
    const matcher = new BoundedMatcher();
    const match = (count: number): void => {
      for (let index = 0; index < count; index++) matcher.test(`^(a|b)*c{${index + 1}}$`, `${'ab'.repeat(100)}c`);
    };
    expect(() => match(20)).not.toThrow();
    expect(() => match(1_000)).toThrow(/too long for the pattern/);
  });

  it('is compiled by whoever keeps it', () => {
    let compiled = 0;
    const pattern = compilePattern('^a');
    const matcher = new BoundedMatcher(() => {
      compiled++;
      return pattern;
    });
    expect([matcher.test('^a', 'abc'), matcher.test('^a', 'cba'), compiled]).toEqual([true, false, 2]);
  });
});
