import { describe, expect, it } from 'vitest';
import { jsonErrorPlace } from './json-error.ts';

describe('the place where a text stops being JSON', () => {
  it.each([
    ['nonsense', 'line 1, column 2'],
    ['[{"a":1},]', 'line 1, column 10'],
    ["[{'a':1}]", 'line 1, column 3'],
    ['[\n  { "a": 1 }\n  { "b": 2 }\n]', 'line 3, column 3'],
    ['[1]]', 'line 1, column 4'],
    ['[{"a":1}', 'line 1, column 9'],
    ['["unfinished', 'line 1, column 13'],
    ['', 'line 1, column 1'],
  ])('is, for %j, %s', (text, place) => {
    expect(jsonErrorPlace(text)).toBe(place);
  });
});
