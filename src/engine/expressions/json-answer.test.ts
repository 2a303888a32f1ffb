import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readJsonAnswer } from './json-answer.ts';

describe('JSON in model output', () => {
  it('may be the whole text', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(readJsonAnswer(text)).toEqual({ value: JSON.parse(text), path: 'direct', byteOffset: 0 });
      }),
    );
  });

  it('is found in a fenced block', () => {
    const text = 'Là:\n```json\n{"a": 1}\n```\nDone.';
    expect(readJsonAnswer(text)).toEqual({ value: { a: 1 }, path: 'markdown-fence', byteOffset: 13 });
  });

  it('is found within prose', () => {
    const text = 'The answer is {"a": "}\\"{", "b": [1, {}]} as you asked.';
    expect(readJsonAnswer(text)).toEqual({ value: { a: '}"{', b: [1, {}] }, path: 'brace-walker', byteOffset: 14 });
  });

  it.each(['', 'no JSON', '{"a": 1', 'see {a: 1}', '```json\n{"a"\n```'])('is not found in %j', (text) => {
    expect(readJsonAnswer(text)).toBeUndefined();
  });
});
