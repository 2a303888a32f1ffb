import { describe, expect, it } from 'vitest';
import { edge, expression, node, workflow } from '../../../test/support/definitions.ts';
import type { EdgeCondition } from '../../protocol/running/workflows.ts';
import { COMPILATION_COST_MAX, compilationCost } from './compilation-cost.ts';

const conditions = (count: number, condition: EdgeCondition) =>
  workflow(
    [node('a'), node('b')],
    Array.from({ length: count }, (_, index) => ({ ...edge('a', 'b'), id: `e${index}`, condition })),
  );
const ports = (count: number, text: string) =>
  workflow([
    node('a', 'core.identity', {
      inputs: Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, expression(text)])),
    }),
  ]);

describe('what it costs to compile a definition', () => {
  it('is little for what people write', () => {
    expect(compilationCost(ports(200, 'variables.amount > 100 && inputs.plan == "enterprise"'))).toBeLessThan(
      COMPILATION_COST_MAX / 5,
    );
    const pattern: EdgeCondition = { type: 'regex', left: 'x', right: '^[\\p{L}\\p{N} .-]{1,64}$' };
    expect(compilationCost(conditions(50, pattern))).toBeLessThan(COMPILATION_COST_MAX / 2);
  });

  it.each([
    ['long expressions', ports(240, 'true||'.repeat(600))],
    ['many expressions', ports(15_000, '1+1')],
    [
      'conditions',
      conditions(2_000, { type: 'expression', expression: 'output.text.startsWith("an order of somebody")' }),
    ],
    ['repetitions', conditions(100, { type: 'regex', left: 'x', right: '(a|b|c)*x[a-z]{1,300}' })],
    ['classes of letters', conditions(100, { type: 'regex', left: 'x', right: '(?i)\\pL\\pL\\pL\\pL\\pL\\pL\\pL' })],
    ['wide ranges', conditions(30, { type: 'regex', left: 'x', right: '(?i)[b-\\x{10ffff}]' })],
  ])('is too much for many of them: %s', (_what, definition) => {
    expect(compilationCost(definition)).toBeGreaterThan(COMPILATION_COST_MAX);
  });

  it('is nothing for what is not compiled', () => {
    expect(compilationCost(conditions(10_000, { type: 'equals', left: 'x', right: 'y'.repeat(1_000) }))).toBe(0);
    expect(compilationCost(conditions(1, { type: 'regex', left: 'x', right: 5 }))).toBe(0);
  });
});
