import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, deepEqual, isObject, valueAt } from './json.ts';

describe('canonical JSON', () => {
  it.each([
    [{ b: 1, a: 2 }, '{"a":2,"b":1}'],
    [[3, { z: null, y: [] }], '[3,{"y":[],"z":null}]'],
    ['text', '"text"'],
    [null, 'null'],
    [undefined, 'null'],
    [{ a: undefined, b: 1 }, '{"b":1}'],
    [[undefined, 1], '[null,1]'],
    [{ ü: 1, u: 2, é: 3 }, '{"u":2,"é":3,"ü":1}'],
    [1e21, '1e+21'],
    [1e-7, '1e-7'],
    [333333333.3333333, '333333333.3333333'],
    [-0, '0'],
    ['€$\u000f\nA\'B"\\\\"/', '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'],
  ])('of %j is %s', (value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });

  it('sorts keys by UTF-16 code units, as RFC 8785 requires', () => {
    const keys = ['\u20ac', '\r', '\ufb33', '1', '\u{1f600}', '\u0080', '\u00f6'];
    const value = Object.fromEntries(keys.map((key) => [key, 0]));
    expect(
      [...canonicalJson(value).matchAll(/"((?:[^"\\]|\\.)*)":/g)].map(([, key]) => JSON.parse(`"${key}"`)),
    ).toEqual(['\r', '1', '\u0080', '\u00f6', '\u20ac', '\u{1f600}', '\ufb33']);
  });

  it('does not depend on key order, and parses to the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.infiniteStream(fc.nat()), (value, chance) => {
        const shuffled = shuffleKeys(value, () => chance.next().value as number);
        expect(canonicalJson(shuffled)).toBe(canonicalJson(value));
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('differs for different values', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        expect(canonicalJson(a) === canonicalJson(b)).toBe(deepEqual(normal(a), normal(b)));
      }),
    );
  });

  it('keeps keys named like inherited members', () => {
    const value = JSON.parse('{"__proto__": 1, "constructor": 2}') as unknown;
    expect(canonicalJson(value)).toBe('{"__proto__":1,"constructor":2}');
  });
});

describe('equality', () => {
  it('is reflexive, symmetric and transitive', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), fc.jsonValue(), (a, b, c) => {
        expect(deepEqual(a, structuredClone(a))).toBe(true);
        expect(deepEqual(a, b)).toBe(deepEqual(b, a));
        if (deepEqual(a, b) && deepEqual(b, c)) expect(deepEqual(a, c)).toBe(true);
      }),
    );
  });

  it('is transitive among many equal values', () => {
    const small = fc.constantFrom<unknown>(
      0,
      '',
      null,
      false,
      [],
      {},
      [0],
      [[]],
      { a: 0 },
      { a: [] },
      { a: undefined },
      '0',
    );
    fc.assert(
      fc.property(small, small, small, (a, b, c) => {
        expect(deepEqual(a, b)).toBe(deepEqual(b, a));
        if (deepEqual(a, b) && deepEqual(b, c)) expect(deepEqual(a, c)).toBe(true);
      }),
    );
  });

  it.each([
    [
      [1, 2],
      [1, 2, 3],
    ],
    [{ a: 1 }, { b: 1 }],
    [{ a: undefined }, {}],
    [{ a: undefined }, { b: undefined }],
    [[], {}],
    [{ 0: 1 }, [1]],
    [null, {}],
    [null, undefined],
    ['1', 1],
    [{ toString: 1 }, {}],
  ])('does not hold between %j and %j', (a, b) => {
    expect(deepEqual(a, b)).toBe(false);
    expect(deepEqual(b, a)).toBe(false);
  });

  it('ignores the order of keys', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.infiniteStream(fc.nat()), (value, chance) => {
        expect(
          deepEqual(
            value,
            shuffleKeys(value, () => chance.next().value as number),
          ),
        ).toBe(true);
      }),
    );
  });
});

describe('a path', () => {
  const root = { a: { b: [{ c: 1 }, 'x'] }, '': { '': 2 }, nothing: null };

  it.each([
    ['a.b.0.c', 1],
    ['a.b.1', 'x'],
    ['nothing', null],
    ['', { '': 2 }],
    ['.', 2],
    ['a.b.2', undefined],
    ['a.b.0.c.d', undefined],
    ['nothing.more', undefined],
    ['a..b', undefined],
  ])('%j leads to %j', (path, value) => {
    expect(valueAt(root, path)).toEqual(value);
  });

  it.each([
    'constructor',
    '__proto__',
    'a.constructor',
    'a.b.map',
    'a.b.0.__proto__',
    'a.b.1.length',
    'a.toString.name',
  ])('never reaches a prototype: %s', (path) => {
    expect(valueAt(root, path)).toBeUndefined();
  });

  it('into a value without members is undefined', () => {
    for (const value of [undefined, null, 1, 'text', true]) expect(valueAt(value, 'length')).toBeUndefined();
  });

  it('never throws', () => {
    fc.assert(fc.property(fc.jsonValue(), fc.string(), (value, path) => void valueAt(value, path)));
  });
});

describe('an object', () => {
  it.each([
    [{}, true],
    [[], false],
    [null, false],
    ['x', false],
    [undefined, false],
    [Object.create(null), true],
  ])('is %j: %s', (value, expected) => {
    expect(isObject(value)).toBe(expected);
  });
});

function shuffleKeys(value: unknown, chance: () => number): unknown {
  if (Array.isArray(value)) return value.map((item) => shuffleKeys(item, chance));
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, shuffleKeys(item, chance)] as const);
  return Object.fromEntries(
    entries
      .map((entry) => [chance(), entry] as const)
      .toSorted(([a], [b]) => a - b)
      .map(([, entry]) => entry),
  );
}

/** Normalized as in JSON: without the sign of zero. */
function normal(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}
