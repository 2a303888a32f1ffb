import { expect, it } from 'vitest';
import { wishOf } from './gate-edits.ts';

it.each([
  ['nothing', 'Dear Ada, hello.', 'Dear  Ada, hello.', ''],
  ['a word', 'Hi Ada, it is done.', 'Dear Ada, it is done.', 'Write "Dear" instead of "Hi".'],
  ['an end', 'It is done.', 'It is done. Kind regards', 'End with "Kind regards".'],
  ['a beginning', 'It is done.', 'Hello! It is done.', 'Begin with "Hello!".'],
  ['an addition', 'It is done today.', 'It is all done today.', 'Add "all".'],
  ['what is too much', 'It is, sort of, done.', 'It is, done.', 'Leave out "sort of,".'],
  [
    'all of it',
    'No.',
    'We are sorry that this took so long.',
    'Prefer answers like this one: We are sorry that this took so long.',
  ],
])('%s that somebody changed is an instruction', (_what, before, after, wish) => {
  expect(wishOf(before, after)).toBe(wish);
});
