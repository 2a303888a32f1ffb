import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OutputBudget, OutputLimitExceeded } from './output-budget.ts';

describe('an output budget', () => {
  it('takes about what a value has as JSON text, never less without escapes and long numbers', () => {
    const plain = fc.stringMatching(/^[a-z]{0,20}$/);
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof({ maxDepth: 4 }, plain, fc.integer({ min: 0, max: 9_999 }), tie('list'), tie('record')),
      list: fc.array(tie('tree'), { maxLength: 5 }),
      record: fc.dictionary(plain, tie('tree'), { maxKeys: 5 }),
    }));
    fc.assert(
      fc.property(tree, fc.constantFrom(0, 2, 10), (value, indent) => {
        const budget = new OutputBudget('It', 10_000_000);
        budget.takeJson(value, indent);
        expect(budget.taken).toBeGreaterThanOrEqual(JSON.stringify(value).length);
      }),
    );
  });

  it('stops within a value that is small in memory and long as text', () => {
    let value: unknown = 'x'.repeat(100);
    for (let level = 0; level < 60; level++) value = [value, value];
    expect(() => new OutputBudget('The output', 1_000_000).takeJson(value)).toThrow(OutputLimitExceeded);
  });

  it('counts the white space of indented text', () => {
    const budget = new OutputBudget('It', 10_000);
    budget.takeJson([[[1]]], 10);
    expect(budget.taken).toBeGreaterThanOrEqual(JSON.stringify([[[1]]], null, 10).length);
  });
});
