import { describe, expect, it } from 'vitest';
import { BoundedMatcher, compilePattern, matchBounded } from './pattern.ts';

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
  ])('is refused if its program is large: %s', (source) => {
    expect(() => compilePattern(source)).toThrow(/too complex/);
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
