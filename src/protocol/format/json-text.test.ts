import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findDuplicateKey, indentJson, memberText } from './json-text.ts';

const ODD = '{ "z": 1.0, "a":[1e2, -0,{"b":"\\u00e9\\ud83d\\ude00 ] } \\" , :"}], "z2": {} }';

describe('the text of a member', () => {
  it('is the exact source text', () => {
    const body = `{"note":"the \\"artifact\\": {}", "artifact" :\n ${ODD} ,"title":null}`;
    expect(memberText(body, 'artifact')).toBe(ODD);
    expect(memberText(body, 'title')).toBe('null');
    expect(memberText(body, 'note')).toBe('"the \\"artifact\\": {}"');
  });

  it('is that of a top-level member, whatever the escapes in its name, and the last of duplicates', () => {
    expect(memberText('{"a":{"b":1},"\\u0062":2,"b":3}', 'b')).toBe('3');
    expect(memberText('{"a":{"b":1}}', 'b')).toBeUndefined();
    expect(memberText('{}', 'b')).toBeUndefined();
  });

  it('parses to the value of the member', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(4), (value, spaces) => {
        const text = JSON.stringify(value, null, spaces);
        for (const name of Object.keys(value)) {
          expect(JSON.parse(memberText(text, name)!)).toEqual(JSON.parse(JSON.stringify(value[name])));
        }
      }),
    );
  });
});

describe('a duplicate key', () => {
  it('is found at any depth', () => {
    expect(findDuplicateKey('{"a":1,"a":2}')).toBe('/a');
    expect(findDuplicateKey('{"a":[{"b":1},{"c":{"d":1,"\\u0064":2}}]}')).toBe('/a/1/c/d');
    expect(findDuplicateKey('{"a":{},"a":{}}')).toBe('/a');
  });

  it('is looked for in time and memory that grow with the text alone', () => {
    const text = `{"${'k'.repeat(300_000)}":[${'0,'.repeat(200_000)}0]}`;
    expect(findDuplicateKey(text)).toBeUndefined();
  });

  it('is not the same name in different objects or items', () => {
    expect(findDuplicateKey('{"a":{"b":1},"c":{"b":1},"d":[{"b":1},{"b":1},1,1]}')).toBeUndefined();
    fc.assert(fc.property(fc.jsonValue(), (value) => findDuplicateKey(JSON.stringify(value)) === undefined));
  });
});

describe('indentation', () => {
  it('keeps every token as written', () => {
    expect(indentJson('{"a":1.0,"b":[1e2,{"c":"x , y"}],"d":{},"e":[]}')).toBe(
      '{\n  "a": 1.0,\n  "b": [\n    1e2,\n    {\n      "c": "x , y"\n    }\n  ],\n  "d": {},\n  "e": []\n}',
    );
  });

  it('equals the output of JSON.stringify for values it wrote', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(indentJson(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
      }),
    );
  });
});
