import { type ASTNode, Environment } from '@marcbachmann/cel-js';
import { isObject, type JsonObject } from '../../protocol/format/json.ts';
import { compilePattern, PATTERN_SIZE_MAX, type Pattern } from './pattern.ts';
import { type Reference, referencesIn } from './references.ts';

/**
 * Limit on the work of one evaluation. A loop iteration costs one step, other parts of the expression a fraction, long
 * texts and lists more.
 */
const STEPS_MAX = 100_000;
const PARTS_PER_STEP = 5;
const CHARS_PER_STEP = 40;
const ITEMS_PER_STEP = 8;
/** Characters that a pattern of one instruction matches for a step. */
const MATCHES_PER_STEP = 10;
/** Compiling a pattern, for each of its instructions. */
const STEPS_PER_INSTRUCTION = 50;
/** Functions of the library that take far longer than others. */
const DURATION_STEPS = 25;
/** Adding an entry to a map that the expression makes. */
const ENTRY_STEPS = 1;
const TIME_ZONE_STEPS = 500;
const PATTERN_CHARS_MAX = 1_000;
const EXPRESSION_CHARS_MAX = 4_096;
const LIMITS = { maxAstNodes: 1_000, maxDepth: 40, maxListElements: 500, maxMapEntries: 500, maxCallArguments: 16 };

/** What a condition may be by its text; `dyn` depends on the values. */
const CONDITION_TYPES: ReadonlySet<string> = new Set(['bool', 'dyn']);

/**
 * Thrown when an expression is invalid or cannot be evaluated. The message never quotes values, which may be sensitive.
 */
export class ExpressionError extends Error {
  override readonly name = 'ExpressionError';
}

/**
 * A compiled CEL expression. Evaluation reads only the scope, and always terminates within a bounded number of steps.
 */
export type Expression = (scope: Record<string, unknown>) => unknown;

/** CEL with a fixed set of variables. */
interface ExpressionLanguage {
  /** Throws ExpressionError if the text does not parse or refers to a variable that is not in scope. */
  compile(text: string): Expression;
  /** As `compile`; throws also if the result can be no boolean, whatever the variables are. */
  compileCondition(text: string): Expression;
  /** The members of variables that a valid expression reads by fixed names. */
  references(text: string): Reference[];
}

/** Creates a language with the given variables, each of dynamic type. */
export function expressionLanguage(names: readonly string[]): ExpressionLanguage {
  const environment = new Environment({
    unlistedVariablesAreDyn: false,
    homogeneousAggregateLiterals: false,
    enableOptionalTypes: true,
    limits: LIMITS,
  });
  for (const name of names) environment.registerVariable(name, 'dyn');
  registerMixedArithmetic(environment);
  return {
    compile: (text) => compile(environment, text),
    compileCondition: (text) => {
      const compiled = compile(environment, text);
      const { type } = environment.check(text);
      if (type === undefined || CONDITION_TYPES.has(type)) return compiled;
      throw new ExpressionError(`the expression must be true or false; this one is of the type ${type}`);
    },
    references: (text) => referencesIn(environment.parse(text).ast, names),
  };
}

function compile(environment: Environment, text: string): Expression {
  if (text.length > EXPRESSION_CHARS_MAX) {
    throw new ExpressionError(`the expression is longer than ${EXPRESSION_CHARS_MAX} characters`);
  }
  const budget = new Budget();
  const program = parse(environment, text);
  bound(program.ast, budget);
  const evaluate = (scope: Record<string, unknown>): unknown => {
    budget.refill();
    return toJson(program(scope), budget);
  };
  return (scope) => {
    try {
      return tolerant(evaluate, scope);
    } catch (error) {
      throw error instanceof ExpressionError ? error : new ExpressionError(reasonOf(error));
    }
  };
}

/**
 * Parse errors may quote the author's own text. The first line of the library's message is the reason; the rest draws
 * the position, which is said in words instead.
 */
function parse(environment: Environment, text: string): ReturnType<Environment['parse']> {
  try {
    const program = environment.parse(text);
    const checked = program.check();
    if (!checked.valid) throw checked.error;
    return program;
  } catch (error) {
    throw new ExpressionError(String((error as Error).message).split('\n', 1)[0]! + positionOf(error, text));
  }
}

function positionOf(error: unknown, text: string): string {
  const { node } = error as { node?: { readonly start?: unknown } };
  if (typeof node?.start !== 'number') return '';
  const lines = text.slice(0, node.start).split('\n');
  const line = lines.length === 1 ? '' : `line ${lines.length}, `;
  return `, at ${line}column ${lines.at(-1)!.length + 1}`;
}

/** Says what went wrong without quoting values, as the library's messages would. */
function reasonOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code.replaceAll('_', ' ') : 'the expression could not be evaluated';
}

/**
 * The library identifies types by `constructor`, and misreads an object that has a member of that name. A caller must
 * not be able to disable a condition that way, so on that error the objects are passed as maps.
 */
function tolerant(evaluate: (scope: Record<string, unknown>) => unknown, scope: Record<string, unknown>): unknown {
  try {
    return evaluate(scope);
  } catch (error) {
    if (error instanceof ExpressionError || !/unsupported type/i.test(String((error as Error).message))) throw error;
    return evaluate(Object.fromEntries(Object.entries(scope).map(([name, value]) => [name, asMaps(value)])));
  }
}

function asMaps(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asMaps);
  if (!isObject(value)) return value;
  return new Map(Object.entries(value).map(([key, item]) => [key, asMaps(item)]));
}

/** JSON has one number type, so arithmetic on mixed int and double must work: `variables.count + 1`. */
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

/** The steps that the current evaluation may still use. */
class Budget {
  #left = 0;
  /** The pattern that each `matches` used last in this evaluation, so that one in a loop is compiled once. */
  readonly #patterns = new Map<Node, { readonly source: string; readonly pattern: Pattern }>();

  refill(): void {
    this.#left = STEPS_MAX;
    this.#patterns.clear();
  }

  /** Compiles a pattern and charges for it. What it costs does not depend on earlier evaluations. */
  patternFor(node: Node, source: string): Pattern {
    const last = this.#patterns.get(node);
    if (last?.source === source) return last.pattern;
    const pattern = compiled(source);
    // A loop goes on after an error, so a pattern that is not valid costs as much as the largest one.
    this.spend((pattern?.size ?? PATTERN_SIZE_MAX) * STEPS_PER_INSTRUCTION);
    if (!pattern) throw new ExpressionError('the pattern is not valid');
    this.#patterns.set(node, { source, pattern });
    return pattern;
  }

  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new ExpressionError(`the expression takes more than ${STEPS_MAX} steps`);
  }

  /** Charges for evaluating a part of the expression to this value. */
  spendOn(value: unknown): void {
    this.spend((typeof value === 'string' ? value.length / CHARS_PER_STEP : 0) + 1 / PARTS_PER_STEP);
  }

  /** Charges for counting the characters of a text, which takes longer than reading it. */
  spendOnCounting(value: unknown): void {
    if (typeof value === 'string') this.spend((2 * value.length) / CHARS_PER_STEP);
  }

  /** Charges for going through a list once, as creating one does. */
  spendOnItems(value: unknown): void {
    if (Array.isArray(value)) this.spend(value.length / ITEMS_PER_STEP);
    else if (value instanceof Map) this.spend(value.size / ITEMS_PER_STEP);
  }

  /** Charges for a deep traversal of a value, which comparison needs. */
  spendOnAll(value: unknown): void {
    this.spendOn(value);
    if (value instanceof Map) for (const item of value.values()) this.spendOnAll(item);
    else if (Array.isArray(value)) for (const item of value) this.spendOnAll(item);
    else if (isObject(value)) this.#spendOnMembers(value);
  }

  /** Members of an object cost a step each: listing them takes far longer than going through a list. */
  #spendOnMembers(value: JsonObject): void {
    for (const key in value) {
      this.spend(1);
      this.spendOnAll(value[key]);
    }
  }
}

function compiled(source: string): Pattern | undefined {
  if (source.length > PATTERN_CHARS_MAX) throw new ExpressionError('the pattern is too long');
  try {
    return compilePattern(source);
  } catch {
    return undefined;
  }
}

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
function bound(ast: ASTNode, budget: Budget): void {
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
    // A comprehension also refers to its evaluation context, which is not part of the tree.
    const { iterable, init, step } = Object(node.args) as Comprehension;
    visit(node.op === 'comprehension' ? [iterable, init, step] : node.args, useBy(node));
  };
  visit(ast, 'read');
}

function chargeIterations(loop: Comprehension, budget: Budget): void {
  const original = loop.condition;
  loop.condition = (accumulator) => {
    budget.spend(1);
    return original ? original(accumulator) : true;
  };
}

/** What a part of the expression does with the values of its own parts: how much of them it goes through. */
type Use = 'read' | 'measured' | 'traversed';

function useBy(node: Node): Use {
  if (COMPARING.has(node.op) || isCallOf(node, 'join')) return 'traversed';
  const isSize = node.op === 'call' && Array.isArray(node.args) && node.args[0] === 'size';
  return isSize || isCallOf(node, 'size') ? 'measured' : 'read';
}

function chargeValue(node: Node, budget: Budget, use: Use): void {
  const evaluate = node.meta.evaluate;
  const extra = extraSteps(node);
  node.setMeta('evaluate', ((evaluator, self, context) => {
    budget.spend(extra);
    const value = evaluate(evaluator, self, context);
    if (use === 'traversed') budget.spendOnAll(value);
    else budget.spendOn(value);
    if (use === 'measured') budget.spendOnCounting(value);
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

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).setMeta === 'function';
}

function isCallOf(node: Node, name: string): boolean {
  return node.op === 'rcall' && Array.isArray(node.args) && node.args[0] === name;
}

/**
 * Converts CEL integers, timestamps, durations and optionals to JSON. A value used in several places is charged each
 * time.
 */
function toJson(value: unknown, budget: Budget): unknown {
  budget.spendOn(value);
  // Signed and unsigned integers.
  if (typeof (value as Partial<object> | undefined)?.valueOf?.() === 'bigint') return Number(value);
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new ExpressionError('the result is not a finite number');
  if (Array.isArray(value)) return value.map((item) => toJson(item, budget));
  if (value instanceof Map) return fromEntries([...value], budget);
  if (value instanceof Date) return value.toISOString();
  if (!isObject(value)) return typeof value === 'function' || typeof value === 'symbol' ? null : value;
  if (isOptional(value)) return value.hasValue() ? toJson(value.value(), budget) : null;
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return String(value);
  return fromEntries(Object.entries(value), budget);
}

function fromEntries(entries: readonly (readonly [unknown, unknown])[], budget: Budget): JsonObject {
  return Object.fromEntries(entries.map(([key, item]) => [String(key), toJson(item, budget)]));
}

function isOptional(value: object): value is { hasValue(): boolean; value(): unknown } {
  return 'hasValue' in value && typeof value.hasValue === 'function';
}
