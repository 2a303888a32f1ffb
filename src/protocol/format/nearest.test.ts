import { expect, it } from 'vitest';
import { nearest } from './nearest.ts';

it.each([
  ['txet', ['text', 'test'], 'text'],
  ['Subject', ['subject'], 'subject'],
  ['a', ['b'], 'b'],
  ['total', ['subject'], undefined],
  ['anything', [], undefined],
])('finds what was meant by %s', (name, known, meant) => {
  expect(nearest(name, known)).toBe(meant);
});

it('does not compare names that nobody types', () => {
  const long = 'a'.repeat(500_000);
  expect(nearest(`${long}b`, [long])).toBeUndefined();
});
