import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { readJsonAnswer, readJsonBlocks } from './json-answer.ts';

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

describe('the blocks of an output', () => {
  const parts = fc.array(
    fc.constantFrom('Là ', '```json\n{"a": 1}\n```', '```\n[2]```', '```\nno\n```', '😀\n', '```'),
  );

  it('are found where they begin', () => {
    fc.assert(
      fc.property(parts, (given) => {
        const text = `So: ${given.join('')}`;
        for (const { value, byteOffset } of readJsonBlocks(text)) {
          const rest = Buffer.from(text).subarray(byteOffset).toString();
          expect(JSON.parse(rest.slice(0, rest.indexOf('```')))).toEqual(value);
        }
      }),
    );
  });

  it('are counted up to once, however many there are', () => {
    const text = `é ${'```\n1\n```'.repeat(1_000)}`;
    const count = vi.spyOn(Buffer, 'byteLength');
    const blocks = readJsonBlocks(text);
    const counted = count.mock.calls.reduce((sum, [part]) => sum + (part as string).length, 0);
    count.mockRestore();
    expect(blocks).toHaveLength(1_000);
    expect(blocks.at(-1)!.byteOffset).toBe(Buffer.byteLength(text) - '1\n```'.length);
    expect(counted).toBeLessThanOrEqual(text.length);
  });
});
