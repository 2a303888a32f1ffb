import fc from 'fast-check';
import { expect, it } from 'vitest';
import { includesText } from './includes-text.ts';

it('agrees with the built-in search', () => {
  const letters = fc.stringMatching(/^[ab]{0,60}$/);
  fc.assert(
    fc.property(letters, letters, letters, (before, part, after) => {
      const long = part.repeat(3);
      expect(includesText(before + long + after, long)).toBe(true);
      expect(includesText(before + after, long)).toBe((before + after).includes(long));
    }),
  );
});

it('does not take long for texts that are almost the same everywhere', () => {
  expect(includesText('a'.repeat(1_000_000), `${'a'.repeat(400_000)}b${'a'.repeat(100_000)}`)).toBe(false);
});
