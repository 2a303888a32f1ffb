import { Type } from 'typebox';
import { type ConfigProblem, failure } from '../../../engine/definition/check.ts';
import { type Expression, expressionLanguage } from '../../../engine/expressions/expression.ts';
import { ExpressionError } from '../../../engine/expressions/expression-error.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { NonEmpty } from '../../../protocol/format/schema.ts';
import { invalid, type NodeType, type Outcome } from '../../../runtime/node-type.ts';
import { ITEMS_MAX } from './arrays.ts';

const ONE_ITEM = expressionLanguage(['item', 'inputs']);
const ALL_ITEMS = expressionLanguage(['array', 'inputs']);

const Config = Type.Object({
  expression: Type.String({
    minLength: 1,
    description: 'CEL over `item` and `inputs`, which is all ports of this node',
  }),
});

/**
 * Defines a node that evaluates a CEL expression for each item. All items are one evaluation with one budget, so a long
 * list cannot take longer than any other expression.
 */
function eachItem(
  named: Pick<NodeType, 'typeId' | 'description'>,
  macro: string,
  outputs: (result: unknown[], total: number) => JsonObject,
): NodeType {
  const compile = (text: string): Expression => {
    // Compiled alone first: a text that is not an expression must not become one inside the macro.
    ONE_ITEM.compile(text);
    return ALL_ITEMS.compile(`array.${macro}(item, ${text}\n)`);
  };
  return {
    ...named,
    requiredInputs: ['array'],
    outputs: () => Object.keys(outputs([], 0)),
    role: 'pure',
    config: Config,
    check: ({ expression }) => problemsOf('.expression', () => compile(expression as string)),
    run: ({ config, inputs }): Outcome => {
      const { array } = inputs;
      if (!Array.isArray(array)) return invalid('The input `array` must be an array.');
      if (array.length > ITEMS_MAX) return invalid(`The input \`array\` has more than ${ITEMS_MAX} items.`);
      return evaluated(() => {
        const result = compile(config.expression as string)({ array, inputs });
        return outputs(result as unknown[], array.length);
      });
    },
  };
}

function problemsOf(path: string, compile: () => unknown): ConfigProblem[] {
  return failure(compile).map((message) => ({ path, message }));
}

function evaluated(evaluate: () => JsonObject): Outcome {
  try {
    return { done: { outputs: evaluate() } };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return invalid(`The expression failed: ${error.message}.`);
  }
}

const map = eachItem(
  { typeId: 'vendor.capstan.data.map', description: 'Evaluates an expression for each item.' },
  'map',
  (array) => ({ array }),
);

const filter = eachItem(
  { typeId: 'vendor.capstan.data.filter', description: 'Keeps the items for which an expression is true.' },
  'filter',
  (array, total) => ({
    array,
    matched: array.length,
    total,
  }),
);

const ANYTHING = expressionLanguage(['inputs']);

/** Computes one value from the inputs. */
const evaluate: NodeType = {
  typeId: 'vendor.capstan.data.evaluate',
  description: 'Evaluates an expression.',
  outputs: () => ['value'],
  role: 'pure',
  config: Type.Object({ expression: NonEmpty }),
  check: ({ expression }) => problemsOf('.expression', () => ANYTHING.compile(expression as string)),
  run: ({ config, inputs }) => evaluated(() => ({ value: ANYTHING.compile(config.expression as string)({ inputs }) })),
};

/** Node types that evaluate CEL expressions. */
export const EXPRESSION_NODES: readonly NodeType[] = [map, filter, evaluate];
