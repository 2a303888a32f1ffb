import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../protocol/format/json.ts';
import type { EdgeCondition } from '../../protocol/running/workflows.ts';
import { Allowance } from './allowance.ts';
import { compileCondition } from './condition.ts';
import { ExpressionError } from './expression-error.ts';

describe('the compared value', () => {
  it('is a dotted path into the outputs of the source', () => {
    expect(holds({ type: 'equals', left: 'a.b.c', right: 1 }, { a: { b: { c: 1 } } })).toBe(true);
    expect(holds({ type: 'equals', left: 'items.1', right: 'y' }, { items: ['x', 'y'] })).toBe(true);
  });

  it('is looked up in the port `output` if no port has the name', () => {
    expect(holds({ type: 'equals', left: 'approved', right: true }, { output: { approved: true } })).toBe(true);
    expect(holds({ type: 'equals', left: 'output.approved', right: true }, { output: { approved: true } })).toBe(true);
  });

  it('is the port of that name, even if the port `output` has a member of that name', () => {
    expect(
      holds({ type: 'equals', left: 'approved', right: true }, { approved: false, output: { approved: true } }),
    ).toBe(false);
    expect(holds({ type: 'truthy', left: 'a.b' }, { a: {}, output: { a: { b: 1 } } })).toBe(false);
  });

  it('is absent if `output` is not an object', () => {
    expect(holds({ type: 'truthy', left: 'length' }, { output: 'text' })).toBe(false);
    expect(holds({ type: 'truthy', left: '0' }, { output: ['x'] })).toBe(false);
  });

  it.each([
    'constructor',
    '__proto__',
    'toString',
    'hasOwnProperty',
    'a.constructor',
    'a.__proto__',
    'a.b.constructor.name',
  ])('is never in a prototype: %s', (left) => {
    expect(holds({ type: 'truthy', left }, { a: { b: 'text' }, output: { c: 1 } })).toBe(false);
    expect(holds({ type: 'falsy', left }, { a: { b: 'text' }, output: { c: 1 } })).toBe(true);
  });

  it('may be a member called constructor', () => {
    expect(
      holds({ type: 'equals', left: 'constructor', right: 'Ada' }, { constructor: 'Ada' } as unknown as JsonObject),
    ).toBe(true);
  });
});

describe('equals and notEquals', () => {
  it.each([
    [1, 1, true],
    [1, '1', false],
    [0, false, false],
    [null, null, true],
    ['', null, false],
    [[1, [2, { x: null }]], [1, [2, { x: null }]], true],
    [[1, 2], [2, 1], false],
    [{ a: 1, b: { c: [] } }, { b: { c: [] }, a: 1 }, true],
    [{ a: 1 }, { a: 1, b: 2 }, false],
    [{}, [], false],
    [[], {}, false],
  ])('compare %j with %j by structure: %s', (value, right, isEqual) => {
    expect(holds({ type: 'equals', left: 'x', right }, { x: value })).toBe(isEqual);
    expect(holds({ type: 'notEquals', left: 'x', right }, { x: value })).toBe(!isEqual);
  });

  it('treat an absent value as unequal to everything, including null', () => {
    expect(holds({ type: 'equals', left: 'x', right: null }, {})).toBe(false);
    expect(holds({ type: 'notEquals', left: 'x', right: null }, {})).toBe(true);
  });
});

describe('contains', () => {
  it.each([
    ['some text', 'me te', true],
    ['some text', 'TEXT', false],
    ['room 42', 42, true],
    ['it is true', true, true],
    [['a', { b: 1 }], { b: 1 }, true],
    [['a', ['b']], ['b'], true],
    [['a'], 'b', false],
    [[1], '1', false],
    [{ a: 1 }, 'a', false],
    [42, 4, false],
    [null, null, false],
  ])('of %j and %j is %s', (value, right, expected) => {
    expect(holds({ type: 'contains', left: 'x', right }, { x: value })).toBe(expected);
  });

  it('is false for an absent value', () => {
    expect(holds({ type: 'contains', left: 'x', right: 'undefined' }, {})).toBe(false);
  });
});

describe('regex', () => {
  it('finds a pattern anywhere in a string', () => {
    expect(holds({ type: 'regex', left: 'x', right: '^a.c$' }, { x: 'abc' })).toBe(true);
    expect(holds({ type: 'regex', left: 'x', right: 'b' }, { x: 'abc' })).toBe(true);
    expect(holds({ type: 'regex', left: 'x', right: '^b' }, { x: 'abc' })).toBe(false);
  });

  it.each([42, null, ['abc'], { a: 'abc' }])('does not match %j, which is not a string', (value) => {
    expect(holds({ type: 'regex', left: 'x', right: '' }, { x: value })).toBe(false);
  });

  it('handles a catastrophic pattern in linear time', () => {
    const text = `${'a'.repeat(100_000)}!`;
    expect(holds({ type: 'regex', left: 'x', right: '^(a+)+$' }, { x: text })).toBe(false);
  });

  it.each(['(', '(?=look)', '(a)\\1', undefined, 42])(
    'refuses the pattern %j when the definition is taken in',
    (right) => {
      expect(() => compileCondition({ type: 'regex', left: 'x', right })).toThrow(Error);
    },
  );
});

describe('truthy and falsy', () => {
  it.each([
    [false, false],
    [null, false],
    [0, false],
    [-0, false],
    [Number.NaN, false],
    ['', false],
    [true, true],
    [1, true],
    [-1, true],
    [' ', true],
    ['0', true],
    ['false', true],
    [[], true],
    [{}, true],
  ])('of %j: %s, and its complement', (value, truthy) => {
    expect(holds({ type: 'truthy', left: 'x' }, { x: value })).toBe(truthy);
    expect(holds({ type: 'falsy', left: 'x' }, { x: value })).toBe(!truthy);
  });

  it('treat an absent value as falsy', () => {
    expect(holds({ type: 'truthy', left: 'x.y' }, { x: {} })).toBe(false);
    expect(holds({ type: 'falsy', left: 'x.y' }, { x: {} })).toBe(true);
  });

  it('ignore a right side', () => {
    expect(holds({ type: 'truthy', left: 'x', right: 'whatever' }, { x: 1 })).toBe(true);
  });
});

describe('expression', () => {
  it('sees variables, inputs of the run, outputs of nodes, and those of the source as output', () => {
    const condition = compileCondition({
      type: 'expression',
      expression: 'variables.v == 1 && inputs.i == 2 && nodes.n.x == 3 && output.o == 4',
    });
    expect(condition({ variables: { v: 1 }, inputs: { i: 2 }, nodes: { n: { x: 3 } }, output: { o: 4 } })).toBe(true);
  });

  it.each(['1', '"true"', 'output', '[true]', 'null'])('is met only by true, not by %s', (expression) => {
    expect(holds({ type: 'expression', expression }, { yes: true })).toBe(false);
  });

  // Undeclared inputs are accepted, so whoever starts a run could otherwise disable a branch that checks it.
  it.each(['constructor', 'toString', 'hasOwnProperty'])('is not made false by an input called %s', (name) => {
    const condition = compileCondition({ type: 'expression', expression: 'inputs.amount > 1000' });
    expect(condition({ variables: {}, inputs: { amount: 5_000, [name]: 'x' }, nodes: {}, output: {} })).toBe(true);
  });

  it('throws if it cannot be evaluated, so that the reason can be logged', () => {
    expect(() => holds({ type: 'expression', expression: 'output.missing == 1' }, {})).toThrow(ExpressionError);
  });
});

describe('a malformed condition is refused when it is compiled', () => {
  it.each(['equals', 'notEquals', 'contains', 'regex', 'truthy', 'falsy'] as const)('%s without a left', (type) => {
    expect(() => compileCondition({ type, right: 'x' })).toThrow(/`left`/);
    expect(() => compileCondition({ type, left: '', right: 'x' })).toThrow(/`left`/);
  });

  it.each([undefined, '', '1 +', 'who.knows == 1', 'run.status == "completed"'])('expression %j', (expression) => {
    const condition = { type: 'expression', ...(expression === undefined ? {} : { expression }) } as EdgeCondition;
    expect(() => compileCondition(condition)).toThrow(Error);
  });
});

function holds(condition: EdgeCondition, output: JsonObject): boolean {
  return compileCondition(condition)({ variables: {}, inputs: {}, nodes: {}, output });
}

describe('conditions that are evaluated together', () => {
  const wide = Object.fromEntries(Array.from({ length: 60_000 }, (_, index) => [`k${index}`, 1]));

  it.each([
    ['an object', { type: 'equals', left: 'x', right: {} }, wide],
    ['an object in another', { type: 'notEquals', left: 'x', right: { a: [{}] } }, { a: [wide] }],
    ['objects of a list', { type: 'contains', left: 'x', right: {} }, [wide, wide]],
    ['the size of an object', { type: 'expression', expression: 'size(output.x) > 0' }, wide],
  ] satisfies [string, EdgeCondition, unknown][])('share what they may take: %s', (_what, condition, x) => {
    const compiled = compileCondition(condition);
    const allowance = new Allowance();
    const evaluate = () => compiled({ variables: {}, inputs: {}, nodes: {}, output: { x } }, allowance);
    expect(evaluate).not.toThrow();
    expect(() => Array.from({ length: 10 }, evaluate)).toThrow(/together/);
    expect(evaluate).toThrow(/together/);
  });
});
