import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TextHashes } from './text-hashes.ts';

it('gives equal parts of texts the same hash', () => {
  const text = fc.string();
  fc.assert(
    fc.property(text, text, text, (before, part, after) => {
      const whole = new TextHashes(part).of(0, part.length);
      expect(new TextHashes(before + part + after).of(before.length, part.length)).toBe(whole);
    }),
  );
});

it('tells different parts of a monotonous text apart', () => {
  const text = `${'a'.repeat(5_000)}b`;
  const hashes = new TextHashes(text);
  const found = new Set(Array.from({ length: 1_000 }, (_, index) => hashes.of(0, index + 1)));
  expect(found.size).toBeGreaterThan(990);
  expect(hashes.of(1, 5_000)).not.toBe(hashes.of(0, 5_000));
});
