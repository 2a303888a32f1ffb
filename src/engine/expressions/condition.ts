import { deepEqual, isObject, type JsonObject, own, valueAt } from '../../protocol/format/json.ts';
import type { EdgeCondition } from '../../protocol/running/workflows.ts';
import type { Allowance } from './allowance.ts';
import { MATCHES_PER_STEP } from './bounds.ts';
import { CHARS_PER_STEP, ITEMS_PER_STEP } from './budget.ts';
import { type Expression, expressionLanguage } from './expression.ts';
import { includesText } from './includes-text.ts';
import { compilePattern, matchBounded } from './pattern.ts';
import type { Read, Reference } from './references.ts';

/** The names that an edge condition or a port expression can refer to. */
export interface Scope {
  readonly variables: JsonObject;
  readonly inputs: JsonObject;
  /** Outputs by node id. */
  readonly nodes: JsonObject;
  /** Outputs of the edge's source; only conditions have it. */
  readonly output?: JsonObject;
}

/** A compiled edge condition. What it costs is taken from the allowance of all conditions that are evaluated with it. */
export type Condition = (scope: Scope, allowance?: Allowance) => boolean;

const EDGES = expressionLanguage(['variables', 'inputs', 'nodes', 'output']);
const PORTS = expressionLanguage(['variables', 'inputs', 'nodes']);

/** Compiles the expression of an input port; throws ExpressionError if it is invalid. */
export const compilePort = (text: string): Expression => PORTS.compile(text);

/** What the valid expression of an input port reads. */
export const portReferences = (text: string): Reference[] => PORTS.references(text);

/** Everything that the valid expression of an input port may read. */
export const portReads = (text: string): Read[] => PORTS.reads(text);

/** What a valid edge condition reads; `left` is a path into the outputs of the source. */
export function conditionReferences({ type, expression, left }: EdgeCondition): Reference[] {
  if (type === 'expression') return EDGES.references(expression!);
  return [{ root: 'output', path: left!.split('.'), isGuarded: type === 'truthy' || type === 'falsy' }];
}

/** Compiles an edge condition; throws an error that says what is wrong with it. */
export function compileCondition(condition: EdgeCondition): Condition {
  if (condition.type === 'expression') {
    if (!condition.expression) throw new Error('a condition of type expression needs `expression`');
    const evaluate = EDGES.compile(condition.expression);
    return (scope, allowance) => evaluate({ output: {}, ...scope }, allowance) === true;
  }
  const { left, right, type } = condition;
  if (!left) throw new Error(`a condition of type ${type} needs \`left\`, a path into the outputs of the source node`);
  const test = tests[type](right);
  return (scope, allowance) => {
    // Whoever evaluates many goes on after one that failed.
    allowance?.check();
    return test(valueAtOutput(scope.output ?? {}, left), allowance);
  };
}

type Test = (value: unknown, allowance?: Allowance) => boolean;

const tests: Record<Exclude<EdgeCondition['type'], 'expression'>, (right: unknown) => Test> = {
  equals: (right) => (value, allowance) => isEqual(value, right, allowance),
  notEquals: (right) => (value, allowance) => !isEqual(value, right, allowance),
  contains: (right) => (value, allowance) => {
    if (typeof value === 'string') {
      allowance?.spend(value.length / CHARS_PER_STEP);
      return includesText(value, String(right));
    }
    if (!Array.isArray(value)) return false;
    allowance?.spend(value.length / ITEMS_PER_STEP);
    return value.some((item) => isEqual(item, right, allowance));
  },
  regex: (right) => {
    if (typeof right !== 'string') throw new Error('a condition of type regex needs a pattern in `right`');
    const pattern = compilePattern(right);
    return (value, allowance) => {
      if (typeof value !== 'string') return false;
      allowance?.spend((pattern.size * value.length) / MATCHES_PER_STEP);
      return matchBounded(pattern, value);
    };
  },
  truthy: () => Boolean,
  falsy: () => (value) => !value,
};

function isEqual(value: unknown, right: unknown, allowance: Allowance | undefined): boolean {
  if (allowance) spendOnComparison(value, right, allowance);
  return deepEqual(value, right);
}

/** Charges for the members of what is compared with an object of the definition: they are listed, however many there are. */
function spendOnComparison(value: unknown, right: unknown, allowance: Allowance): void {
  if (Array.isArray(value) && Array.isArray(right)) {
    allowance.spend(Math.min(value.length, right.length) / ITEMS_PER_STEP);
    for (const [index, item] of right.entries()) spendOnComparison(value[index], item, allowance);
  } else if (isObject(value) && isObject(right)) {
    allowance.spend(Object.keys(value).length);
    for (const [name, item] of Object.entries(right)) spendOnComparison(own(value, name), item, allowance);
  }
}

/** `left` begins with a port; if there is no such port, it is a path into the object on the port `output`. */
function valueAtOutput(outputs: JsonObject, path: string): unknown {
  const [port = ''] = path.split('.', 1);
  if (!Object.hasOwn(outputs, port) && isObject(outputs.output)) return valueAt(outputs.output, path);
  return valueAt(outputs, path);
}
