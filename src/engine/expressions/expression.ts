import { Environment } from '@marcbachmann/cel-js';
import { isObject, type JsonObject, own } from '../../protocol/format/json.ts';
import type { Allowance } from './allowance.ts';
import { bound, DURATION_STEPS, usesOptionals } from './bounds.ts';
import { Budget } from './budget.ts';
import { ExpressionError, UnknownNameError } from './expression-error.ts';
import { type Read, type Reference, readsIn, referencesIn } from './references.ts';

const EXPRESSION_CHARS_MAX = 4_096;
const LIMITS = { maxAstNodes: 1_000, maxDepth: 40, maxListElements: 500, maxMapEntries: 500, maxCallArguments: 16 };

/** What a condition may be by its text; `dyn` depends on the values. */
const CONDITION_TYPES: ReadonlySet<string> = new Set(['bool', 'dyn']);

/**
 * A compiled CEL expression. Evaluation reads only the scope, and always terminates within a bounded number of steps,
 * which it also takes from the allowance of the expressions that are evaluated with it. It throws ExpressionError alone.
 */
export type Expression = (scope: Record<string, unknown>, allowance?: Allowance) => unknown;

/** CEL with a fixed set of variables. */
interface ExpressionLanguage {
  /** Throws ExpressionError if the text does not parse or refers to a variable that is not in scope. */
  compile(text: string): Expression;
  /** As `compile`; throws also if the result can be no boolean, whatever the variables are. */
  compileCondition(text: string): Expression;
  /** The members of variables that a valid expression reads by fixed names. */
  references(text: string): Reference[];
  /** Everything that a valid expression may read. */
  reads(text: string): Read[];
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
    compile: (text) => compile(environment, names, text),
    compileCondition: (text) => {
      const compiled = compile(environment, names, text);
      const { type } = environment.check(text);
      if (type === undefined || CONDITION_TYPES.has(type)) return compiled;
      throw new ExpressionError(`the expression must be true or false; this one is of the type ${type}`);
    },
    references: (text) => referencesIn(environment.parse(text).ast, names),
    reads: (text) => readsIn(environment.parse(text).ast, names),
  };
}

function compile(environment: Environment, names: readonly string[], text: string): Expression {
  if (text.length > EXPRESSION_CHARS_MAX) {
    throw new ExpressionError(`the expression is longer than ${EXPRESSION_CHARS_MAX} characters`);
  }
  const budget = new Budget();
  const program = parse(environment, names, text);
  const optionalReads = usesOptionals(program.ast) ? readsIn(program.ast, names) : [];
  bound(program.ast, budget);
  const evaluate = (scope: Record<string, unknown>): unknown => {
    budget.refill();
    return toJson(program(scope), budget);
  };
  return (scope, allowance) => {
    try {
      budget.begin(allowance);
      const isMisread = optionalReads.some((read) => misreads(scope, read, budget));
      return isMisread ? evaluate(withMaps(scope)) : tolerant(evaluate, scope);
    } catch (error) {
      throw error instanceof ExpressionError ? error : new ExpressionError(reasonOf(error, text));
    }
  };
}

/**
 * Parse errors may quote the author's own text. The first line of the library's message is the reason; the rest draws
 * the position, which is said in words instead.
 */
function parse(environment: Environment, names: readonly string[], text: string): ReturnType<Environment['parse']> {
  try {
    const program = environment.parse(text);
    const checked = program.check();
    if (!checked.valid) throw checked.error;
    return program;
  } catch (error) {
    const [reason = ''] = String((error as Error).message).split('\n', 1);
    const [, unknownName] = /^Unknown variable: (\w+)$/.exec(reason) ?? [];
    if (unknownName !== undefined) throw new UnknownNameError(unknownName, positionOf(error, text), names);
    throw new ExpressionError(reason + positionOf(error, text));
  }
}

function positionOf(error: unknown, text: string): string {
  const { node } = error as { node?: { readonly start?: unknown } };
  if (typeof node?.start !== 'number') return '';
  const lines = text.slice(0, node.start).split('\n');
  const line = lines.length === 1 ? '' : `line ${lines.length}, `;
  return `, at ${line}column ${lines.at(-1)!.length + 1}`;
}

/** Says what went wrong without quoting values, as the library's messages would. A key that the author wrote is no value. */
function reasonOf(error: unknown, text: string): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code !== 'string') return 'the expression could not be evaluated';
  const [, key] = /^No such key: (\w+)$/m.exec(String(message)) ?? [];
  const isWritten = code === 'no_such_key' && text.matchAll(/\.\??(\w+)/g).some(([, member]) => member === key);
  return isWritten ? `no such key: ${key}` : code.replaceAll('_', ' ');
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
    return evaluate(withMaps(scope));
  }
}

/**
 * Whether the library misreads something that an expression reads. One with optionals would take the members of it for
 * missing. What else the run knows makes no difference, and takes no time.
 */
function misreads(scope: Record<string, unknown>, { root, path }: Read, budget: Budget): boolean {
  let value = scope[root];
  for (const name of path) {
    if (!isObject(value)) break;
    if (Object.hasOwn(value, 'constructor')) return true;
    value = own(value, name);
  }
  return hasMisread(value, budget);
}

function hasMisread(value: unknown, budget: Budget): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (isObject(value) && Object.hasOwn(value, 'constructor')) return true;
  const items = Object.values(value);
  budget.spendOnItems(items);
  return items.some((item) => hasMisread(item, budget));
}

function withMaps(scope: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(scope).map(([name, value]) => [name, asMaps(value)]));
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

/**
 * Converts CEL integers, timestamps, durations, bytes and optionals to JSON. A value used in several places is charged each
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
  if (value instanceof Uint8Array) return base64(value);
  if (!isObject(value)) return typeof value === 'function' || typeof value === 'symbol' ? null : value;
  if (isOptional(value)) return value.hasValue() ? toJson(value.value(), budget) : null;
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    budget.spend(DURATION_STEPS);
    return String(value);
  }
  return fromEntries(Object.entries(value), budget);
}

function base64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

function fromEntries(entries: readonly (readonly [unknown, unknown])[], budget: Budget): JsonObject {
  return Object.fromEntries(entries.map(([key, item]) => [String(key), toJson(item, budget)]));
}

function isOptional(value: object): value is { hasValue(): boolean; value(): unknown } {
  return 'hasValue' in value && typeof value.hasValue === 'function';
}
