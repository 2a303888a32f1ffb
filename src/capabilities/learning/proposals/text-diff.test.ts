import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { indentJson } from '../../../protocol/format/json-text.ts';
import { diffOfTexts } from './text-diff.ts';

describe('a diff of two texts', () => {
  it('shows what came and went, member by member', () => {
    expect(diffOfTexts('{"a":1,"b":[1,2],"c":"x"}', '{"a":1,"b":[1,3],"c":"x","d":null}')).toBe(
      `${[' {', '   "a": 1,', '   "b": [', '     1,', '-    2', '+    3', '   ],', '-  "c": "x"', '+  "c": "x",'].join(
        '\n',
      )}\n+  "d": null\n }`,
    );
  });

  it('tells two spellings of one value apart', () => {
    expect(diffOfTexts('{"a":1.0}', '{"a":1}')).toBe(' {\n-  "a": 1.0\n+  "a": 1\n }');
  });

  it('is all new where there was nothing before', () => {
    expect(diffOfTexts(undefined, '{"a":1}')).toBe('+{\n+  "a": 1\n+}');
  });

  it('has both texts in it', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        const [before, after] = [JSON.stringify(one), JSON.stringify(other)];
        const lines = diffOfTexts(before, after).split('\n');
        const without = (sign: string): string =>
          lines
            .filter((line) => !line.startsWith(sign))
            .map((line) => line.slice(1))
            .join('\n');
        expect(without('+')).toBe(indentJson(before));
        expect(without('-')).toBe(indentJson(after));
      }),
    );
  });
});
