import { type ASTNode, Environment } from '@marcbachmann/cel-js';
import { isObject } from '../protocol/json.ts';
import { compilePattern } from './pattern.ts';

/** Work one evaluation may do: an iteration costs one, a list its length, a string a sixty-fourth of its length. */
const STEPS_MAX = 100_000;
const CHARS_PER_STEP = 64;
const EXPRESSION_CHARS_MAX = 4_096;
const LIMITS = { maxAstNodes: 1_000, maxDepth: 40, maxListElements: 500, maxMapEntries: 500, maxCallArguments: 16 };

export class ExpressionError extends Error {
  override readonly name = 'ExpressionError';
}

/** A CEL expression, checked and ready. Evaluating it reads nothing but the scope and always ends. */
export type Expression = (scope: Record<string, unknown>) => unknown;

export interface ExpressionLanguage {
  /** Throws ExpressionError when the text does not parse or names something that is not in scope. */
  compile(text: string): Expression;
}

/** CEL over the given names, each of any type. */
export function expressionLanguage(names: readonly string[]): ExpressionLanguage {
  const environment = new Environment({
    unlistedVariablesAreDyn: false,
    homogeneousAggregateLiterals: false,
    enableOptionalTypes: true,
    limits: LIMITS,
  });
  for (const name of names) environment.registerVariable(name, 'dyn');
  registerMixedArithmetic(environment);
  return { compile: (text) => compile(environment, text) };
}

function compile(environment: Environment, text: string): Expression {
  if (text.length > EXPRESSION_CHARS_MAX) {
    throw new ExpressionError(`the expression is longer than ${EXPRESSION_CHARS_MAX} characters`);
  }
  const budget = { left: 0 };
  const program = guarded(() => {
    const parsed = environment.parse(text);
    const checked = parsed.check();
    if (!checked.valid) throw checked.error;
    bound(parsed.ast, budget);
    return parsed;
  });
  return (scope) => {
    budget.left = STEPS_MAX;
    return toJson(guarded(() => program(scope)));
  };
}

function guarded<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    // The first line is the reason; what follows quotes the source.
    throw new ExpressionError(String((error as Error)?.message ?? error).split('\n', 1)[0]!);
  }
}

/** JSON knows one kind of number, so `variables.count + 1` has to mean what it says. */
function registerMixedArithmetic(environment: Environment): void {
  const operators: Record<string, (a: number, b: number) => number> = {
    '+': (a, b) => a + b,
    '-': (a, b) => a - b,
    '*': (a, b) => a * b,
    '/': (a, b) => a / b,
    '%': (a, b) => a % b,
  };
  for (const [operator, apply] of Object.entries(operators)) {
    const handler = (a: unknown, b: unknown) => apply(Number(a), Number(b));
    environment.registerOperator(`double ${operator} int`, handler);
    environment.registerOperator(`int ${operator} double`, handler);
  }
  environment.registerOperator('double % double', (a: unknown, b: unknown) => Number(a) % Number(b));
}

interface Budget {
  left: number;
}

function spend(budget: Budget, steps: number): void {
  budget.left -= steps;
  if (budget.left < 0) throw new ExpressionError(`the expression takes more than ${STEPS_MAX} steps`);
}

/** What the library's tree looks like where we have to reach into it; `expression.test.ts` guards this. */
interface Node {
  readonly op: string;
  readonly args: unknown;
  readonly meta: { evaluate: Evaluate; readonly alternate?: Node };
  setMeta(key: string, value: unknown): Node;
}
type Evaluate = (evaluator: { run(node: Node, context: unknown): unknown }, node: Node, context: unknown) => unknown;
interface Comprehension {
  condition?: (accumulator: unknown) => boolean;
  readonly [part: string]: unknown;
}

/**
 * CEL always ends, but nested macros and concatenation can make it end very late, and its `matches` uses the host's
 * backtracking regular expressions. Loops and concatenations are made to pay, `matches` gets a linear engine.
 */
function bound(ast: ASTNode, budget: Budget): void {
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) visit(item);
    else if (isNode(value)) boundNode(value, budget, visit);
    else if (isObject(value)) for (const item of Object.values(value)) visit(item);
  };
  visit(ast);
}

function boundNode(node: Node, budget: Budget, visit: (value: unknown) => void): void {
  if (node.op === 'comprehension') {
    const loop = node.args as Comprehension;
    const goesOn = loop.condition;
    loop.condition = (accumulator) => {
      spend(budget, 1);
      return goesOn ? goesOn(accumulator) : true;
    };
  }
  if (node.op === '+' || isCallOf(node, 'join')) payForResult(node, budget);
  if (isCallOf(node, 'matches')) matchLinearly(node, budget);
  if (node.meta.alternate) visit(node.meta.alternate);
  if (node.op === 'comprehension')
    for (const part of ['iterable', 'init', 'step']) visit((node.args as Comprehension)[part]);
  else visit(node.args);
}

function payForResult(node: Node, budget: Budget): void {
  const evaluate = node.meta.evaluate;
  node.setMeta('evaluate', ((evaluator, self, context) => {
    const result = evaluate(evaluator, self, context);
    spend(
      budget,
      Array.isArray(result) ? result.length : typeof result === 'string' ? result.length / CHARS_PER_STEP : 0,
    );
    return result;
  }) satisfies Evaluate);
}

function matchLinearly(node: Node, budget: Budget): void {
  const [, receiver, parameters] = node.args as [string, Node, Node[]];
  node.setMeta('evaluate', ((evaluator, _self, context) => {
    const text = evaluator.run(receiver, context);
    const pattern = evaluator.run(parameters[0]!, context);
    if (typeof text !== 'string' || typeof pattern !== 'string') throw new ExpressionError('matches() takes strings');
    spend(budget, (text.length + pattern.length) / CHARS_PER_STEP);
    return compilePattern(pattern).test(text);
  }) satisfies Evaluate);
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).setMeta === 'function';
}

function isCallOf(node: Node, name: string): boolean {
  return node.op === 'rcall' && Array.isArray(node.args) && node.args[0] === name;
}

/** CEL's integers, timestamps, durations and optionals as JSON has them. */
function toJson(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (Array.isArray(value)) return value.map(toJson);
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [String(key), toJson(item)]));
  if (value instanceof Date) return value.toISOString();
  if (!isObject(value)) return typeof value === 'function' || typeof value === 'symbol' ? null : value;
  if (isOptional(value)) return value.hasValue() ? toJson(value.value()) : null;
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return String(value);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toJson(item)]));
}

function isOptional(value: object): value is { hasValue(): boolean; value(): unknown } {
  return 'hasValue' in value && typeof value.hasValue === 'function';
}
