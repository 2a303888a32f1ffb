import { describe, expect, it } from 'vitest';
import { configProblems, outputsOf, run } from '../../../../test/support/node-context.ts';

const MAP = 'vendor.capstan.data.map';
const FILTER = 'vendor.capstan.data.filter';
const EVALUATE = 'vendor.capstan.data.evaluate';

const ask = (typeId: string, expression: string, inputs: Record<string, unknown>): unknown =>
  outputsOf(typeId, { config: { expression }, inputs });

const LINES = [
  { sku: 'a', price: 2.5, quantity: 4 },
  { sku: 'b', price: 10, quantity: 1 },
];

describe('an expression', () => {
  it('is asked of each item', () => {
    expect(ask(MAP, 'item.price * item.quantity', { array: LINES })).toEqual({ array: [10, 10] });
    expect(ask(MAP, '{"id": item.sku, "isBulk": item.quantity > inputs.bulk}', { array: LINES, bulk: 3 })).toEqual({
      array: [
        { id: 'a', isBulk: true },
        { id: 'b', isBulk: false },
      ],
    });
    expect(ask(FILTER, 'item.quantity > 1 // more than one', { array: LINES })).toEqual({
      array: [LINES[0]],
      matched: 1,
      total: 2,
    });
    expect(ask(MAP, 'item', { array: [] })).toEqual({ array: [] });
  });

  it('may use macros of its own', () => {
    expect(ask(MAP, 'item.filter(x, x > 1).size()', { array: [[1, 2, 3], [1]] })).toEqual({ array: [2, 0] });
  });

  it('makes one value of everything that comes in', () => {
    expect(ask(EVALUATE, 'inputs.a + inputs.b', { a: 1, b: 2 })).toEqual({ value: 3 });
    expect(ask(EVALUATE, 'inputs.list.exists(x, x == "b")', { list: ['a', 'b'] })).toEqual({ value: true });
  });

  it.each([
    [MAP, 'item +'],
    [MAP, 'variables.secret'],
    [MAP, 'item), array.map(item, 1'],
    [FILTER, 'x'],
    [EVALUATE, 'item'],
    [EVALUATE, ''],
  ])('of %s is refused with the definition when it is none: %s', (typeId, expression) => {
    expect(configProblems(typeId, { expression })).toEqual(['.expression']);
  });

  it.each([
    ['what an item does not have', MAP, 'item.absent', LINES],
    ['a filter that does not say yes or no', FILTER, 'item.quantity', LINES],
    ['a list that is none', MAP, 'item', 'abc'],
    [
      'more work than an expression may do',
      MAP,
      'inputs.array.map(x, x + item)',
      Array.from({ length: 5_000 }, () => 1),
    ],
  ])('fails the node for good on %s', (_what, typeId, expression, array) => {
    expect(run(typeId, { config: { expression }, inputs: { array } })).toMatchObject({
      failed: { code: 'validation_error', retryable: false },
    });
  });

  it('quotes no values when it fails', () => {
    const outcome = run(MAP, { config: { expression: 'item.absent' }, inputs: { array: [{ note: 'XYZZY' }] } });
    expect(JSON.stringify(outcome)).not.toContain('XYZZY');
  });
});
