import type { WorkflowDefinition } from '../../protocol/running/workflows.ts';
import { patternCost } from '../expressions/pattern.ts';

/** What the expressions and patterns of a definition may cost together: they are compiled in about 100 ms. */
export const COMPILATION_COST_MAX = 100_000;
/** An expression takes as long to compile as so many characters, however short it is. */
const COST_PER_EXPRESSION = 16;
const COST_PER_INSTRUCTION = 4;

/** About what compiling a definition costs, in characters of expressions; found without compiling anything. */
export function compilationCost({ nodes, edges }: Pick<WorkflowDefinition, 'nodes' | 'edges'>): number {
  let cost = 0;
  for (const { inputs } of nodes) {
    for (const port of Object.values(inputs)) if (port.type === 'expression') cost += costOfExpression(port.expression);
  }
  for (const { condition } of edges) {
    if (condition?.type === 'expression') cost += costOfExpression(condition.expression);
    else if (condition?.type === 'regex') cost += costOfPattern(condition.right);
  }
  return cost;
}

function costOfExpression(text = ''): number {
  return text.length + COST_PER_EXPRESSION;
}

function costOfPattern(source: unknown): number {
  return typeof source === 'string' ? patternCost(source) * COST_PER_INSTRUCTION : 0;
}
