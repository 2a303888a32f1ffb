import { deepEqual, isObject, type JsonObject, valueAt } from '../../protocol/format/json.ts';
import type { EdgeCondition } from '../../protocol/running/workflows.ts';
import { type Expression, expressionLanguage } from './expression.ts';
import { compilePattern } from './pattern.ts';

/** What an edge condition or a port expression can see. */
export interface Scope {
  readonly variables: JsonObject;
  readonly inputs: JsonObject;
  readonly nodes: JsonObject;
  readonly output?: JsonObject;
}

export type Condition = (scope: Scope) => boolean;

const EDGES = expressionLanguage(['variables', 'inputs', 'nodes', 'output']);
const PORTS = expressionLanguage(['variables', 'inputs', 'nodes']);

export const compilePort = (text: string): Expression => PORTS.compile(text);

/** Throws with a reason that names what is wrong when the condition is malformed. */
export function compileCondition(condition: EdgeCondition): Condition {
  if (condition.type === 'expression') {
    if (!condition.expression) throw new Error('an expression condition needs an `expression`');
    const evaluate = EDGES.compile(condition.expression);
    return (scope) => evaluate({ output: {}, ...scope }) === true;
  }
  const { left, right, type } = condition;
  if (!left) throw new Error(`a ${type} condition needs a \`left\` path into the source's outputs`);
  const test = tests[type](right);
  return (scope) => test(valueAtOutput(scope.output ?? {}, left));
}

type Test = (value: unknown) => boolean;

const tests: Record<Exclude<EdgeCondition['type'], 'expression'>, (right: unknown) => Test> = {
  equals: (right) => (value) => deepEqual(value, right),
  notEquals: (right) => (value) => !deepEqual(value, right),
  contains: (right) => (value) =>
    typeof value === 'string'
      ? value.includes(String(right))
      : Array.isArray(value) && value.some((item) => deepEqual(item, right)),
  regex: (right) => {
    if (typeof right !== 'string') throw new Error('a regex condition needs a pattern in `right`');
    const pattern = compilePattern(right);
    return (value) => typeof value === 'string' && pattern.test(value);
  },
  truthy: () => Boolean,
  falsy: () => (value) => !value,
};

/** `left` names a port; where no such port exists, a member of the object on the port called `output`. */
function valueAtOutput(outputs: JsonObject, path: string): unknown {
  const [port = ''] = path.split('.', 1);
  if (!Object.hasOwn(outputs, port) && isObject(outputs.output)) return valueAt(outputs.output, path);
  return valueAt(outputs, path);
}
