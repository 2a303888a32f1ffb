import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../test/support/manual-clock.ts';
import { secretRedactor } from '../../system/redaction.ts';
import { Chunker } from './chunker.ts';
import type { ModelChunk } from './model.ts';

const SECRET = 'Leuchtturmwaerter42';
const redact = secretRedactor([{ id: 'KEY', value: SECRET }]);

function listening() {
  const clock = new ManualClock();
  const heard: (ModelChunk & { isLast: boolean })[] = [];
  const onChunk = (chunk: ModelChunk, isLast: boolean): void => void heard.push({ ...chunk, isLast });
  return { clock, heard, chunker: new Chunker({ clock, redact, onChunk, meta: { model: 'm' } }) };
}

describe('the chunker of an answer', () => {
  it('are told at once, then a few words at a time, and the last tells how it ended', () => {
    const { clock, heard, chunker } = listening();
    chunker.add('One ');
    clock.advance(0);
    expect(heard.map(({ text }) => text)).toEqual(['One ']);
    for (const text of ['two ', 'three ', 'fo']) chunker.add(text);
    clock.advance(100);
    chunker.add('ur');
    chunker.finish({ finishReason: 'stop' });
    expect(heard.map(({ text, isLast }) => [text, isLast])).toEqual([
      ['One ', false],
      ['two three ', false],
      ['four', true],
    ]);
    expect(heard.at(-1)!.meta).toEqual({ model: 'm', finishReason: 'stop' });
  });

  it('are the whole answer, however it comes, and no secret or character passes in parts', () => {
    const words = fc.array(fc.constantFrom('to be', ' ', 'or', '漢字', '😀', '\n', SECRET, `(${SECRET})`), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(words, fc.array(fc.integer({ min: 1, max: 7 })), (parts, cuts) => {
        const { clock, heard, chunker } = listening();
        const text = parts.join('');
        let rest = text;
        for (let turn = 0; rest !== ''; turn++) {
          const length = cuts[turn % (cuts.length || 1)] ?? 3;
          chunker.add(rest.slice(0, length));
          rest = rest.slice(length);
          clock.advance(50);
        }
        chunker.finish({});
        expect(heard.map((piece) => piece.text).join('')).toBe(redact(text));
        expect(heard.filter((piece) => !piece.text.isWellFormed())).toEqual([]);
      }),
    );
  });

  it('do not wait forever for a word to end', () => {
    const { clock, heard, chunker } = listening();
    chunker.add(`so ${'x'.repeat(512)}`);
    clock.advance(0);
    expect(heard.map(({ text }) => text)).toEqual(['so ']);
    chunker.add('x');
    clock.advance(100);
    expect(heard.map(({ text }) => text)).toEqual(['so ', 'x'.repeat(513)]);
  });
});
