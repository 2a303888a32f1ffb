import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readJsonAnswer } from './json-answer.ts';

describe('JSON as models give it', () => {
  it('is taken as it is', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(readJsonAnswer(text)).toEqual({ value: JSON.parse(text), path: 'direct', byteOffset: 0 });
      }),
    );
  });

  it('is found inside a fence', () => {
    const text = 'Là:\n```json\n{"a": 1}\n```\nDone.';
    expect(readJsonAnswer(text)).toEqual({ value: { a: 1 }, path: 'markdown-fence', byteOffset: 13 });
  });

  it('is found among words', () => {
    const text = 'The answer is {"a": "}\\"{", "b": [1, {}]} as you asked.';
    expect(readJsonAnswer(text)).toEqual({ value: { a: '}"{', b: [1, {}] }, path: 'brace-walker', byteOffset: 14 });
  });

  it.each(['', 'no JSON', '{"a": 1', 'see {a: 1}', '```json\n{"a"\n```'])('is not made up from %j', (text) => {
    expect(readJsonAnswer(text)).toBeUndefined();
  });
});
