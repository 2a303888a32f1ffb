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

  it('sorts keys by UTF-16 code units, as RFC 8785 has it', () => {
    const keys = ['\u20ac', '\r', '\ufb33', '1', '\u{1f600}', '\u0080', '\u00f6'];
    const value = Object.fromEntries(keys.map((key) => [key, 0]));
    expect(
      [...canonicalJson(value).matchAll(/"((?:[^"\\]|\\.)*)":/g)].map(([, key]) => JSON.parse(`"${key}"`)),
    ).toEqual(['\r', '1', '\u0080', '\u00f6', '\u20ac', '\u{1f600}', '\ufb33']);
  });

  it('is the same however the keys are ordered, and says the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.infiniteStream(fc.nat()), (value, chance) => {
        const shuffled = shuffleKeys(value, () => chance.next().value as number);
        expect(canonicalJson(shuffled)).toBe(canonicalJson(value));
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('tells different values apart', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        expect(canonicalJson(a) === canonicalJson(b)).toBe(deepEqual(normal(a), normal(b)));
      }),
    );
  });

  it('keeps keys that objects have by nature', () => {
    const value = JSON.parse('{"__proto__": 1, "constructor": 2}') as unknown;
    expect(canonicalJson(value)).toBe('{"__proto__":1,"constructor":2}');
  });
});

describe('equality', () => {
  it('is an equivalence: of everything with itself, both ways round, and from one to the next', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), fc.jsonValue(), (a, b, c) => {
        expect(deepEqual(a, structuredClone(a))).toBe(true);
        expect(deepEqual(a, b)).toBe(deepEqual(b, a));
        if (deepEqual(a, b) && deepEqual(b, c)) expect(deepEqual(a, c)).toBe(true);
      }),
    );
  });

  it('from one to the next also holds where many values are equal', () => {
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

  it('does not care for the order of keys', () => {
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
  ])('never leads into a prototype: %s', (path) => {
    expect(valueAt(root, path)).toBeUndefined();
  });

  it('from something that has no members leads nowhere', () => {
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

/** As JSON has it: without the sign of zero. */
function normal(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}
