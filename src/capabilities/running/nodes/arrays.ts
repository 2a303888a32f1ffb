import { type Static, Type } from 'typebox';
import { render } from '../../../engine/expressions/template.ts';
import type { OutputBudget } from '../../../engine/limits/output-budget.ts';
import { deepEqual, isObject, type JsonObject, valueAt } from '../../../protocol/format/json.ts';
import { OneOf } from '../../../protocol/format/schema.ts';
import { invalid, type NodeType, type Outcome } from '../../../runtime/node-type.ts';

/** Limit on the items of a list: the list becomes part of the event log. */
export const ITEMS_MAX = 100_000;

const Path = Type.String({ description: 'Dotted path into an item; empty for the item itself' });

/** Defines a pure node that works on the list of one input port. */
function listNode<C>(
  named: Named,
  [port, ...outputs]: readonly [input: string, ...outputs: string[]],
  config: NodeType['config'],
  work: Work<C>,
): NodeType {
  return {
    ...named,
    inputs: [port],
    requiredInputs: [port],
    outputs: () => outputs,
    role: 'pure',
    ...(config ? { config } : {}),
    run: ({ config: given, inputs, budget }): Outcome => {
      const list = inputs[port];
      if (!Array.isArray(list)) return invalid(`The input \`${port}\` must be an array.`);
      if (list.length > ITEMS_MAX) return invalid(`The input \`${port}\` has more than ${ITEMS_MAX} items.`);
      return { done: { outputs: work(list, given as C, budget) } };
    },
  };
}

type Named = Pick<NodeType, 'typeId' | 'description'>;
type Work<C> = (list: readonly unknown[], config: C, budget: OutputBudget) => JsonObject;

function at(item: unknown, path = ''): unknown {
  return path === '' ? item : valueAt(item, path);
}

const arrayFilter = listNode<{ path: string; equals: unknown }>(
  { typeId: 'core.openwop.data.array-filter', description: 'Keeps the items with a given value at a path.' },
  ['array', 'array', 'matched', 'total'],
  Type.Object({ path: Path, equals: Type.Unknown() }),
  (list, { path, equals }) => {
    const array = list.filter((item) => deepEqual(at(item, path), equals));
    return { array, matched: array.length, total: list.length };
  },
);

const arrayMap = listNode<{ template: string }>(
  { typeId: 'core.openwop.data.array-map', description: 'Renders a template for each item.' },
  ['array', 'array'],
  Type.Object({ template: Type.String({ description: '`{{ path }}` tokens are looked up in each item' }) }),
  (list, { template }, budget) => ({ array: list.map((item) => render(template, item, budget)) }),
);

const SortKey = Type.Object({
  path: Path,
  direction: Type.Optional(OneOf(['asc', 'desc'])),
  compare: Type.Optional(OneOf(['default', 'natural'])),
});
type SortKey = Static<typeof SortKey>;

const sort = listNode<{ keys: SortKey[] }>(
  { typeId: 'core.flow.sort', description: 'Sorts a list by several keys.' },
  ['array', 'array'],
  Type.Object({ keys: Type.Array(SortKey, { minItems: 1, maxItems: 16 }) }),
  (list, { keys }) => ({ array: list.toSorted(byKeys(keys)) }),
);

/** A fixed locale, so that the order is the same on every machine. */
const ORDERS = {
  default: new Intl.Collator('en').compare,
  natural: new Intl.Collator('en', { numeric: true }).compare,
};

function byKeys(keys: readonly SortKey[]): (a: unknown, b: unknown) => number {
  return (a, b) => {
    for (const key of keys) {
      const difference = inOrder(at(a, key.path) ?? null, at(b, key.path) ?? null, key);
      if (difference !== 0) return difference;
    }
    return 0;
  };
}

/** Items without a value come last in both directions. */
function inOrder(a: unknown, b: unknown, { direction, compare = 'default' }: SortKey): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const isNumeric = typeof a === 'number' && typeof b === 'number';
  const difference = isNumeric ? a - b : ORDERS[compare](toText(a), toText(b));
  return direction === 'desc' ? -difference : difference;
}

const limit = listNode<{ count: number; offset?: number }>(
  { typeId: 'core.flow.limit', description: 'Returns a slice of a list.' },
  ['array', 'array', 'count'],
  Type.Object({ count: Type.Integer({ minimum: 0 }), offset: Type.Optional(Type.Integer({ minimum: 0 })) }),
  (list, { count, offset = 0 }) => {
    const array = list.slice(offset, offset + count);
    return { array, count: array.length };
  },
);

const distinct = listNode<{ path?: string }>(
  { typeId: 'core.flow.distinct', description: 'Removes duplicates from a list.' },
  ['array', 'array', 'dropped'],
  Type.Object({ path: Type.Optional(Path) }),
  (list, { path }) => {
    const firsts = new Map<string, unknown>();
    for (const item of list) {
      const key = keyOf(at(item, path));
      if (!firsts.has(key)) firsts.set(key, item);
    }
    return { array: [...firsts.values()], dropped: list.length - firsts.size };
  },
);

const REDUCTIONS = {
  count: (values) => values.length,
  sum: (values) => numbers(values).reduce((sum, value) => sum + value, 0),
  avg: (values) => average(numbers(values)),
  min: (values) => extreme(numbers(values), Math.min),
  max: (values) => extreme(numbers(values), Math.max),
  first: (values) => values[0] ?? null,
  last: (values) => values.at(-1) ?? null,
  array: (values) => values,
} satisfies Record<string, (values: unknown[]) => unknown>;

function numbers(values: readonly unknown[]): number[] {
  return values.filter((value) => typeof value === 'number');
}

function average(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function extreme(values: readonly number[], better: (a: number, b: number) => number): number | null {
  return values.length === 0 ? null : values.reduce((best, value) => better(best, value));
}

const Aggregation = Type.Object({
  outputKey: Type.String({ pattern: '^(?!(?:key|count)$).+', description: 'Its name in a group; not key or count' }),
  op: OneOf(Object.keys(REDUCTIONS) as (keyof typeof REDUCTIONS)[]),
  path: Type.Optional(Path),
});

interface GroupBy {
  readonly keyPath: string;
  readonly aggregations: readonly Static<typeof Aggregation>[];
}

/** Groups items by a key and aggregates each group; groups come in the order of their first items. */
const arrayGroupBy = listNode<GroupBy>(
  { typeId: 'core.openwop.data.array-group-by', description: 'Groups items and aggregates each group.' },
  ['array', 'groups'],
  Type.Object({ keyPath: Path, aggregations: Type.Array(Aggregation, { minItems: 1, maxItems: 32 }) }),
  (list, { keyPath, aggregations }) => {
    const groups = Map.groupBy(list, (item) => keyOf(at(item, keyPath)));
    return { groups: [...groups.values()].map((items) => describeGroup(items, keyPath, aggregations)) };
  },
);

function describeGroup(items: readonly unknown[], keyPath: string, aggregations: GroupBy['aggregations']): JsonObject {
  const figures = aggregations.map(({ outputKey, op, path }) => {
    const values = items.map((item) => at(item, path) ?? null);
    return [outputKey, REDUCTIONS[op](values)];
  });
  return { key: at(items[0], keyPath) ?? null, count: items.length, ...Object.fromEntries(figures) };
}

const aggregateNumeric = listNode<{ op: 'sum' | 'count' | 'avg' | 'min' | 'max'; path?: string }>(
  { typeId: 'core.flow.aggregate-numeric', description: 'Aggregates the numbers in a list.' },
  ['items', 'result', 'count'],
  Type.Object({ op: OneOf(['sum', 'count', 'avg', 'min', 'max']), path: Type.Optional(Path) }),
  (list, { op, path }) => {
    const values = numbers(list.map((item) => at(item, path)));
    return { result: values.length === 0 ? null : REDUCTIONS[op](values), count: values.length };
  },
);

interface AggregateText {
  readonly separator?: string;
  readonly path?: string;
  readonly template?: string;
}

const aggregateText = listNode<AggregateText>(
  { typeId: 'core.flow.aggregate-text', description: 'Joins a list into one text.' },
  ['items', 'text', 'count'],
  Type.Object({
    separator: Type.Optional(Type.String()),
    path: Type.Optional(Path),
    template: Type.Optional(Type.String({ description: '`{{ path }}` tokens are looked up in each item' })),
  }),
  (list, { separator = '', path, template }, budget) => {
    const pieces = list.map((item) => {
      budget.take(separator.length);
      if (template !== undefined) return render(template, item, budget);
      const value = at(item, path);
      budget.takeJson(value);
      return toText(value);
    });
    return { text: pieces.join(separator), count: pieces.length };
  },
);

function toText(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function keyOf(value: unknown): string {
  return JSON.stringify(value ?? null);
}

/** Merges two objects, not deeply: members of `override` win. */
const objectMerge: NodeType = {
  typeId: 'core.openwop.data.object-merge',
  description: 'Merges two objects; the second one wins.',
  inputs: ['base', 'override'],
  outputs: () => ['merged'],
  role: 'pure',
  run: ({ inputs: { base = {}, override = {} } }) => {
    if (!isObject(base) || !isObject(override)) return invalid('The inputs `base` and `override` must be objects.');
    return { done: { outputs: { merged: { ...base, ...override } } } };
  },
};

/** Node types that work on lists and objects. */
export const ARRAY_NODES: readonly NodeType[] = [
  arrayFilter,
  arrayMap,
  arrayGroupBy,
  sort,
  limit,
  distinct,
  aggregateNumeric,
  aggregateText,
  objectMerge,
];
