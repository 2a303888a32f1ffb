import { type Static, Type } from 'typebox';
import { includesText } from '../../../engine/expressions/includes-text.ts';
import { BoundedMatcher, compilePattern, type Pattern } from '../../../engine/expressions/pattern.ts';
import type { OutputBudget } from '../../../engine/limits/output-budget.ts';
import { deepEqual, own, valueAt } from '../../../protocol/format/json.ts';
import { AnyObject, MapOf, NonEmpty, OneOf } from '../../../protocol/format/schema.ts';
import { BoundedCache } from '../../../runtime/bounded-cache.ts';
import { invalid, type NodeType } from '../../../runtime/node-type.ts';

/** Patterns that were used last: those of one definition are compiled once for all its runs. */
const PATTERNS_MAX = 500;
const patterns = new BoundedCache<string, Pattern>(PATTERNS_MAX);

function patternOf(source: string): Pattern {
  const pattern = patterns.get(source) ?? compilePattern(source);
  patterns.set(source, pattern);
  return pattern;
}

type Operator = (value: unknown, operand: unknown, matcher: BoundedMatcher) => boolean;

const text = (test: (value: string, operand: string) => boolean): Operator => {
  return (value, operand) => typeof value === 'string' && test(value, String(operand));
};
const order = (test: (difference: number) => boolean): Operator => {
  return (value, operand) => {
    if (typeof value === 'number' && typeof operand === 'number') return test(value - operand);
    if (typeof value === 'string' && typeof operand === 'string')
      return test(value < operand ? -1 : Number(value > operand));
    return false;
  };
};

const OPERATORS = {
  eq: deepEqual,
  neq: (value, operand) => !deepEqual(value, operand),
  lt: order((difference) => difference < 0),
  lte: order((difference) => difference <= 0),
  gt: order((difference) => difference > 0),
  gte: order((difference) => difference >= 0),
  in: (value, operand) => Array.isArray(operand) && operand.some((item) => deepEqual(item, value)),
  contains: (value, operand) =>
    Array.isArray(value)
      ? value.some((item) => deepEqual(item, operand))
      : typeof value === 'string' && includesText(value, String(operand)),
  'starts-with': text((value, operand) => value.startsWith(operand)),
  'ends-with': text((value, operand) => value.endsWith(operand)),
  regex: (value, operand, matcher) =>
    typeof value === 'string' && typeof operand === 'string' && matcher.test(operand, value),
  exists: (value) => value !== undefined,
  'not-exists': (value) => value === undefined,
  truthy: (value) => Boolean(value),
  falsy: (value) => !value,
} satisfies Record<string, Operator>;

const Predicate = Type.Object({
  path: Type.String({ description: 'Dotted path into the value; empty for the value itself' }),
  op: OneOf(Object.keys(OPERATORS) as (keyof typeof OPERATORS)[]),
  value: Type.Optional(Type.Unknown()),
});
type Predicate = Static<typeof Predicate>;

function holds(
  { path, op, value: operand }: Predicate,
  value: unknown,
  matcher = new BoundedMatcher(patternOf),
): boolean {
  const operator: Operator = OPERATORS[op];
  return operator(path === '' ? value : valueAt(value, path), operand, matcher);
}

/** Chooses one of two branches; edges have conditions on `branch`. */
const conditional: Omit<NodeType, 'typeId'> = {
  description: 'Evaluates a predicate and names the branch to take.',
  inputs: ['value'],
  outputs: () => ['branch', 'matched', 'value'],
  role: 'pure',
  config: Type.Object({ predicate: Predicate }),
  run: ({ config, inputs: { value } }) => {
    const matched = holds(config.predicate as Predicate, value);
    return { done: { outputs: { branch: matched ? 'then' : 'else', matched, ...given(value) } } };
  },
};

/** Each is tried on the whole value. */
const ROUTES_MAX = 256;

const RouterConfig = Type.Object({
  routes: Type.Array(Type.Object({ label: NonEmpty, predicate: Type.Optional(Predicate) }), {
    minItems: 1,
    maxItems: ROUTES_MAX,
  }),
  mode: Type.Optional(OneOf(['first-match', 'all-match'])),
  defaultLabel: Type.Optional(Type.String()),
});

/** Chooses one or more of several branches. A route without a predicate always matches. */
const router: Omit<NodeType, 'typeId'> = {
  description: 'Selects all branches that match.',
  inputs: ['value'],
  outputs: () => ['branches', 'value'],
  role: 'pure',
  config: RouterConfig,
  run: ({ config, inputs: { value } }) => {
    const { routes, mode = 'first-match', defaultLabel } = config as Static<typeof RouterConfig>;
    const matcher = new BoundedMatcher(patternOf);
    const matching = routes
      .filter(({ predicate }) => !predicate || holds(predicate, value, matcher))
      .map(({ label }) => label);
    const taken = mode === 'first-match' ? matching.slice(0, 1) : matching;
    const branches = taken.length === 0 && defaultLabel !== undefined ? [defaultLabel] : taken;
    return { done: { outputs: { branches, ...given(value) } } };
  },
};

const SwitchConfig = Type.Object({
  cases: MapOf(NonEmpty, { description: 'Label by value; a value that is not a string is written as JSON' }),
  default: Type.Optional(NonEmpty),
});

/** Chooses the branch for a value. */
const switchNode: NodeType = {
  typeId: 'core.flow.switch',
  description: 'Maps a value to the label of a branch.',
  inputs: ['value'],
  outputs: () => ['label', 'matched', 'value'],
  role: 'pure',
  config: SwitchConfig,
  run: ({ config, inputs: { value } }) => {
    const { cases, default: otherwise } = config as Static<typeof SwitchConfig>;
    const found = own(cases, typeof value === 'string' ? value : JSON.stringify(value ?? null));
    const label = found ?? otherwise ?? null;
    return { done: { outputs: { label, matched: label !== null, ...given(value) } } };
  },
};

/** Passes a value on only if a predicate holds for it. */
const filter: NodeType = {
  typeId: 'core.flow.filter',
  description: 'Passes a value on if a predicate is true.',
  inputs: ['value'],
  outputs: () => ['passed', 'value'],
  role: 'pure',
  config: Type.Object({ predicate: Predicate }),
  run: ({ config, inputs: { value } }) => {
    const passed = holds(config.predicate as Predicate, value);
    return { done: { outputs: { passed, value: passed ? (value ?? null) : null } } };
  },
};

const StopConfig = Type.Object({
  code: Type.Optional(NonEmpty),
  message: Type.Optional(NonEmpty),
  details: Type.Optional(AnyObject),
});

/** Fails with an error of the author, which ends the run unless an edge catches it. */
const stopAndError: NodeType = {
  typeId: 'core.flow.stop-and-error',
  description: 'Fails the run with an error of its own.',
  outputs: () => [],
  role: 'pure',
  config: StopConfig,
  run: ({ config }) => {
    const {
      code = 'WORKFLOW_STOPPED',
      message = 'The workflow was stopped.',
      details,
    } = config as Static<typeof StopConfig>;
    return { failed: { code, message, retryable: false, ...(details ? { details } : {}) } };
  },
};

/** Turns an array into items with their index and the total. */
const iterator: Omit<NodeType, 'typeId'> = {
  description: 'Turns an array into items with their index.',
  inputs: ['array'],
  requiredInputs: ['array'],
  outputs: () => ['items', 'total'],
  role: 'pure',
  run: ({ inputs: { array } }) => {
    if (!Array.isArray(array)) return invalid('The input `array` must be an array.');
    const total = array.length;
    return { done: { outputs: { items: array.map((item, index) => ({ item, index, total })), total } } };
  },
};

const MergeConfig = Type.Object({
  mode: Type.Optional(OneOf(['append', 'combine-by-key', 'combine-by-position', 'multiplex', 'choose-branch'])),
  keyPath: Type.Optional(NonEmpty),
});

type Merge = (lists: readonly unknown[][], keyPath: string, budget: OutputBudget) => unknown[];

const MERGES: Record<NonNullable<Static<typeof MergeConfig>['mode']>, Merge> = {
  append: (lists) => lists.flat(),
  'combine-by-key': (lists, keyPath, budget) => {
    const combined = new Map<string, object>();
    for (const item of lists.flat()) {
      const key = JSON.stringify(valueAt(item, keyPath) ?? null);
      // In place: copying what has grown for each of many items would take quadratic time.
      const target = combined.get(key) ?? {};
      combined.set(key, target);
      assign(target, [item], budget);
    }
    return [...combined.values()];
  },
  'combine-by-position': (lists, _keyPath, budget) => {
    const longest = lists.reduce((most, list) => Math.max(most, list.length), 0);
    return Array.from({ length: longest }, (_, index) =>
      assign(
        {},
        lists.map((list) => list[index]),
        budget,
      ),
    );
  },
  multiplex: (lists, _keyPath, budget) =>
    lists.reduce<unknown[]>((left, right) => left.flatMap((a) => right.map((b) => assign({}, [a, b], budget))), [{}]),
  'choose-branch': (lists) => lists.find((list) => list.length > 0) ?? [],
};

/** What each character of a text takes as a member of its own, which is what assigning a text makes of it. */
const MEMBER_CHARACTERS = 16;

/** Adds the members of each source to the target, once they are taken from the budget. */
function assign(target: object, sources: readonly unknown[], budget: OutputBudget): object {
  for (const source of sources) {
    if (typeof source === 'string') budget.take(source.length * MEMBER_CHARACTERS);
    else budget.takeJson(source);
    Object.assign(target, source);
  }
  return target;
}

const MERGED_ITEMS_MAX = 100_000;

/** Merges lists. Without an input `inputs`, the lists are the values of all input ports. */
const merge: Omit<NodeType, 'typeId'> = {
  description: 'Merges lists.',
  outputs: () => ['merged'],
  role: 'pure',
  config: MergeConfig,
  run: ({ config, inputs, budget }) => {
    const { mode = 'append', keyPath = 'id' } = config as Static<typeof MergeConfig>;
    const given = Array.isArray(inputs.inputs) ? inputs.inputs : Object.values(inputs);
    const lists = given.map((list: unknown) => (Array.isArray(list) ? list : [list]));
    const size = mode === 'multiplex' ? lists.reduce((product, list) => product * list.length, 1) : 0;
    if (size > MERGED_ITEMS_MAX) return invalid(`The lists would multiply to more than ${MERGED_ITEMS_MAX} items.`);
    return { done: { outputs: { merged: MERGES[mode](lists, keyPath, budget) } } };
  },
};

function given(value: unknown): { value?: unknown } {
  return value === undefined ? {} : { value };
}

/** Node types for control flow; some have a second id that the protocol reserves. */
export const FLOW_NODES: readonly NodeType[] = [
  { ...conditional, typeId: 'core.conditional' },
  { ...conditional, typeId: 'core.flow.if' },
  { ...router, typeId: 'core.parallel' },
  { ...router, typeId: 'core.flow.router' },
  { ...iterator, typeId: 'core.loop' },
  { ...iterator, typeId: 'core.flow.iterator' },
  { ...merge, typeId: 'core.merge' },
  { ...merge, typeId: 'core.flow.merge' },
  switchNode,
  filter,
  stopAndError,
];
