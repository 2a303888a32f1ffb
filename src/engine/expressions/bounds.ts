import type { ASTNode } from '@marcbachmann/cel-js';
import { isObject } from '../../protocol/format/json.ts';
import type { Budget } from './budget.ts';
import { ExpressionError } from './expression-error.ts';

/** Characters that a pattern of one instruction matches for a step. */
export const MATCHES_PER_STEP = 10;
/** Making or writing a duration takes far longer than other functions of the library. */
export const DURATION_STEPS = 25;
/** Adding an entry to a map that the expression makes. */
const ENTRY_STEPS = 1;
const TIME_ZONE_STEPS = 500;

/** The library's syntax tree, as far as it is instrumented here; `expression.test.ts` detects a change of its shape. */
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

/** Operators that create a new list. */
const LIST_CREATING = new Set(['+', 'list', 'call', 'rcall']);

/** Operators that traverse their operands completely. */
const COMPARING = new Set(['==', '!=', 'in']);

/**
 * Instrumentation that bounds evaluation. CEL always terminates, but nested macros, copies and long texts can make it
 * take very long, and its `matches` uses backtracking regular expressions. So every value and every loop iteration is
 * charged, and `matches` uses a linear-time engine.
 */
export function bound(ast: ASTNode, budget: Budget): void {
  const seen = new Set<Node>();
  const visit = (value: unknown, use: Use): void => {
    if (Array.isArray(value)) for (const item of value) visit(item, use);
    else if (isNode(value)) visitNode(value, use);
    else if (isObject(value)) for (const item of Object.values(value)) visit(item, use);
  };
  const visitNode = (node: Node, use: Use): void => {
    if (seen.has(node)) return;
    seen.add(node);
    if (node.op === 'comprehension') chargeIterations(node.args as Comprehension, budget);
    if (isCallOf(node, 'matches')) matchLinearly(node, budget);
    chargeValue(node, budget, use);
    if (node.meta.alternate) visit(node.meta.alternate, use);
    visit(partsOf(node), useBy(node));
  };
  visit(ast, read);
}

/** The parts of a node. A comprehension also refers to its evaluation context, which is not part of the tree. */
function partsOf(node: Node): unknown {
  const { iterable, init, step } = Object(node.args) as Comprehension;
  return node.op === 'comprehension' ? [iterable, init, step] : node.args;
}

function chargeIterations(loop: Comprehension, budget: Budget): void {
  const original = loop.condition;
  loop.condition = (accumulator) => {
    budget.spend(1);
    return original ? original(accumulator) : true;
  };
}

/** Charges for what a part of the expression does with the value of one of its own parts. */
type Use = (budget: Budget, value: unknown) => void;

const read: Use = (budget, value) => budget.spendOn(value);
const traverse: Use = (budget, value) => budget.spendOnAll(value);
const measure: Use = (budget, value) => {
  budget.spendOn(value);
  budget.spendOnCounting(value);
};
const convert: Use = (budget, value) => {
  budget.spendOn(value);
  budget.checkConverted(value);
};

/** Functions that read a text as something else. */
const CONVERTING: ReadonlySet<unknown> = new Set(['duration', 'timestamp', 'int', 'uint', 'double', 'bool']);
/** Functions that look for one text in another. */
const SEARCHING = ['contains', 'indexOf', 'lastIndexOf', 'split'];

function isSearch(node: Node): boolean {
  return SEARCHING.some((name) => isCallOf(node, name));
}

function searching(search: Node): Use {
  return (budget, value) => {
    budget.spendOn(value);
    if (typeof value === 'string') budget.spendOnSearch(search, value.length);
  };
}

function useBy(node: Node): Use {
  if (isSearch(node)) return searching(node);
  if (COMPARING.has(node.op) || isCallOf(node, 'join')) return traverse;
  const called = node.op === 'call' && Array.isArray(node.args) ? node.args[0] : undefined;
  if (CONVERTING.has(called)) return convert;
  // A loop over an object first lists its members, even if it ends with the first one.
  const isCounted = called === 'size' || isCallOf(node, 'size') || node.op === 'comprehension';
  return isCounted ? measure : read;
}

function chargeValue(node: Node, budget: Budget, use: Use): void {
  const evaluate = node.meta.evaluate;
  const extra = extraSteps(node);
  const isSearching = isSearch(node);
  node.setMeta('evaluate', ((evaluator, self, context) => {
    budget.spend(extra);
    if (isSearching) budget.beginSearch(node);
    const value = evaluate(evaluator, self, context);
    use(budget, value);
    if (LIST_CREATING.has(self.op)) budget.spendOnItems(value);
    return value;
  }) satisfies Evaluate);
}

/** What a part costs beyond its value. A time zone is looked up by the getters of timestamps, which take it. */
function extraSteps(node: Node): number {
  if (node.op === 'map' && Array.isArray(node.args)) return node.args.length * ENTRY_STEPS;
  if (node.op === 'call' && Array.isArray(node.args) && node.args[0] === 'duration') return DURATION_STEPS;
  const [name, , parameters] = node.op === 'rcall' ? (node.args as [string, Node, Node[]]) : ['', undefined, []];
  return name.startsWith('get') && parameters.length > 0 ? TIME_ZONE_STEPS : 0;
}

function matchLinearly(node: Node, budget: Budget): void {
  const [, receiver, parameters] = node.args as [string, Node, Node[]];
  node.setMeta('evaluate', ((evaluator, _self, context) => {
    const text = evaluator.run(receiver, context);
    const pattern = evaluator.run(parameters[0]!, context);
    if (typeof text !== 'string' || typeof pattern !== 'string') throw new ExpressionError('matches() takes strings');
    const { size, test } = budget.patternFor(node, pattern);
    budget.spend((size * text.length) / MATCHES_PER_STEP);
    return test(text);
  }) satisfies Evaluate);
}

/** Whether an expression asks for members that may be missing with `.?` or `[?`. */
export function usesOptionals(tree: unknown): boolean {
  if (Array.isArray(tree)) return tree.some(usesOptionals);
  return isNode(tree) && (tree.op === '.?' || tree.op === '[?]' || usesOptionals(tree.args));
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).setMeta === 'function';
}

function isCallOf(node: Node, name: string): boolean {
  return node.op === 'rcall' && Array.isArray(node.args) && node.args[0] === name;
}
