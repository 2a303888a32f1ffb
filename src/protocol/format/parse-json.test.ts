import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BadJson, parseJson } from './parse-json.ts';

describe('a body', () => {
  it('is parsed', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => {
        fc.pre(!JSON.stringify(value).includes('__proto__'));
        expect(parseJson(JSON.stringify(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it.each(['1e400', '-1e400', '[{"a":[1E+309]}]', `{"n":1${'0'.repeat(400)}}`, `[-${'9'.repeat(310)}.5]`])(
    'has no number beyond the largest: %s',
    (text) => {
      expect(() => parseJson(text)).toThrow(new BadJson('The body has a number that is too large.'));
    },
  );

  it.each(['1e308', '-1.5E-400', '"1e400"', `"${'9'.repeat(400)}"`, `0.${'9'.repeat(400)}`, '{"1e999":true}'])(
    'may have large numbers and long ones: %s',
    (text) => {
      expect(parseJson(text)).toEqual(JSON.parse(text));
    },
  );

  it('may be empty', () => {
    expect(parseJson('')).toBeUndefined();
  });

  it.each(['{"name":"Zoë 😀 日本語"}', '"\\u00e9\\ud83d\\ude00"', '" "', '{"":""}'])(
    'may hold any text: %s',
    (text) => {
      expect(parseJson(text)).toEqual(JSON.parse(text));
    },
  );

  it('may contain an unpaired surrogate, which is kept', () => {
    expect(parseJson('"\\ud800"')).toBe('\ud800');
  });

  it.each([
    '{',
    '{"a":}',
    "{'a':1}",
    '[1,]',
    'undefined',
    'NaN',
    '{"a":1}{',
    '"\u0001"',
    '\\',
    '{"a" 1}',
    ']',
    '}}',
    ' ',
  ])('that is not JSON is refused: %j', (text) => {
    expect(() => parseJson(text)).toThrow(BadJson);
  });

  it('is not quoted in error messages', () => {
    for (const text of ['{"password": XYZZY}', `${'['.repeat(100)}"XYZZY"`, '{"__proto__": "XYZZY"}']) {
      expect(
        messageOf(() => parseJson(text)),
        text,
      ).not.toContain('XYZZY');
    }
  });
});

describe('the depth of a body', () => {
  it('is 64 at most', () => {
    expect(parseJson(nested(64))).toBeDefined();
    expect(() => parseJson(nested(65))).toThrow(/deeper than 64/);
    expect(() => parseJson(`${'{"a":'.repeat(65)}1${'}'.repeat(65)}`)).toThrow(/deeper than 64/);
  });

  it('counts levels, not brackets', () => {
    expect(parseJson(`[${Array(10_000).fill('[]').join(',')}]`)).toHaveLength(10_000);
  });

  it('does not count brackets in strings, whatever their quotes and backslashes', () => {
    const brackets = '[{'.repeat(50);
    for (const text of [brackets, `"${brackets}`, `\\"${brackets}`, `${brackets}\\`, `"\\\\"${brackets}"`]) {
      const value = { text, more: [brackets, '}]'] };
      expect(parseJson(JSON.stringify(value))).toEqual(value);
    }
  });

  it('is checked before anything recurses', () => {
    expect(() => parseJson('['.repeat(1_000_000))).toThrow(/deeper than 64/);
  });
});

describe('keys that could reach a prototype', () => {
  it.each([
    '{"__proto__":{"admin":true}}',
    '{"a":[{"__proto__":1}]}',
    '{"\\u005f_proto__":1}',
    '{ "__pro\\u0074o__" : 1 }',
  ])('are refused: %s', (text) => {
    expect(() => parseJson(text)).toThrow(BadJson);
  });

  it('are accepted as text', () => {
    expect(parseJson('{"a":"__proto__"}')).toEqual({ a: '__proto__' });
  });

  it('may be constructor, which is a key like any other', () => {
    const value = parseJson('{"constructor":{"prototype":{"x":1}}}') as object;
    expect(Object.hasOwn(value, 'constructor')).toBe(true);
    expect(({} as { x?: number }).x).toBeUndefined();
  });
});

function nested(depth: number): string {
  return '['.repeat(depth) + ']'.repeat(depth);
}

function messageOf(work: () => unknown): string {
  try {
    work();
    return 'nothing was said';
  } catch (error) {
    return (error as Error).message;
  }
}
