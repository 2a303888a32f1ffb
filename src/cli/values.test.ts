import { expect, it } from 'vitest';
import { parseAssignments } from './values.ts';

it('reads assignments by the declared types of the inputs', () => {
  const declared = [
    { name: 'text', type: 'string' as const },
    { name: 'list', type: 'array' as const },
    { name: 'count', type: 'number' as const },
  ];
  const read = (...texts: string[]) => parseAssignments(texts, '--set', declared);
  expect(read('text=5', 'list=[1]', 'count=2', 'other=x', 'more={}')).toEqual({
    text: '5',
    list: [1],
    count: 2,
    other: 'x',
    more: {},
  });
  expect(() => read('list=[a')).toThrow('--set list must be of type array, and [a is not JSON.');
  expect(() => read('count=')).toThrow('--set count must be of type number, and an empty text is none.');
  expect(() => read('count=lots')).toThrow('and lots is none. Write for example --set count=5.');
  expect(() => read('count')).toThrow('must have the form name=value');
});
