import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { wholeEnd, withoutEnd } from './text-cuts.ts';

/** Texts with characters of one, two, three and four bytes. */
const texts = fc
  .array(fc.constantFrom('a', 'é', '漢', '😀', '👩‍🚀', '𝒳', '\n'), { maxLength: 60 })
  .map((characters) => characters.join(''));

function piecesOf(text: string, size: number): string[] {
  const pieces: string[] = [];
  for (let start = 0; start < text.length; start += pieces.at(-1)!.length) {
    pieces.push(text.slice(start, wholeEnd(text, start + size)));
  }
  return pieces;
}

describe('a text that is cut into pieces', () => {
  it('is whole if each piece is encoded by itself, whatever their size', () => {
    fc.assert(
      fc.property(texts, fc.integer({ min: 2, max: 20 }), (text, size) => {
        const pieces = piecesOf(text, size);
        expect(Buffer.concat(pieces.map((piece) => Buffer.from(piece))).toString()).toBe(text);
        expect(pieces.every((piece) => piece.length <= size)).toBe(true);
        expect(pieces.slice(0, -1).every((piece) => piece.length >= size - 1)).toBe(true);
      }),
    );
  });

  it('comes to its end although it ends with half of a character', () => {
    for (const text of ['\ud83d', 'ab\ud83d', '\ud83d\ud83d\ud83d', '\ude00\ude00']) {
      expect(piecesOf(text, 2).join('')).toBe(text);
    }
  });
});

describe('a text without its end', () => {
  const characters = fc.array(fc.constantFrom('a', ' ', '.', '!', '\n', '😀'), { maxLength: 20 });

  it('is what the pattern for the whole end would leave', () => {
    fc.assert(
      fc.property(characters, (parts) => {
        const text = parts.join('');
        expect(withoutEnd(text, /[\s.!]/)).toBe(text.replace(/(?:\s|[.!])+$/, ''));
      }),
    );
  });

  it('is not searched for where it is not', () => {
    const tested: string[] = [];
    const dropped = /[!]/;
    dropped.test = (text) => {
      tested.push(text);
      return text === '!';
    };
    expect(withoutEnd(`${'!'.repeat(1_000)}x!!`, dropped)).toBe(`${'!'.repeat(1_000)}x`);
    expect(tested).toEqual(['!', '!', 'x']);
  });
});
