import type { JsonObject } from '../src/protocol/format/json.ts';

/** A definition that fills a request body, or that costs far more than its length. */
export interface HostileDefinition {
  readonly name: string;
  readonly parts: JsonObject;
  /** What its runs are given. */
  readonly inputs: JsonObject;
}

const many = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const wide = Object.fromEntries(many(60_000, (index) => [`k${index}`, 0]));
const node = (id: string, inputs: JsonObject = {}): JsonObject => ({ id, typeId: 'core.identity', inputs });
const [source, target] = [node('a'), node('b')];

function withConditions(name: string, count: number, condition: (index: number) => JsonObject): HostileDefinition {
  const edges = many(count, (index) => ({
    id: `e${index}`,
    sourceNodeId: 'a',
    targetNodeId: 'b',
    condition: condition(index),
  }));
  return { name, parts: { nodes: [source, target], edges }, inputs: { x: wide } };
}

function withExpressions(name: string, count: number, text: (index: number) => string): HostileDefinition {
  const ports = many(count, (index) => [`p${index}`, { type: 'expression', expression: text(index) }] as const);
  return { name, parts: { nodes: [node('a', Object.fromEntries(ports))] }, inputs: { x: wide } };
}

/** What somebody who may register workflows could try in order to hold a host. */
export const HOSTILE_DEFINITIONS: readonly HostileDefinition[] = [
  withConditions('patterns with classes', 900, () => ({
    type: 'regex',
    left: 'x',
    right: `(?i)${'\\pL'.repeat(300)}`,
  })),
  withConditions('patterns with repetitions', 5_000, () => ({ type: 'regex', left: 'x', right: '[\\pL\\pN]{900}' })),
  withConditions('patterns that are not closed', 190, () => ({ type: 'regex', left: 'x', right: '['.repeat(5_000) })),
  withConditions('comparisons with an object', 2_000, () => ({ type: 'equals', left: 'x', right: {} })),
  withConditions('conditions on its size', 900, (index) => ({
    type: 'expression',
    expression: `size(inputs.x) == ${index}`,
  })),
  withExpressions('sizes of an object', 900, () => 'size(inputs.x)'),
  withExpressions('loops that end at once', 900, () => 'inputs.x.exists(name, true)'),
  withExpressions('small expressions', 15_000, (index) => `1+${index}`),
  withExpressions('deep expressions', 5_000, () => `${'['.repeat(38)}1${']'.repeat(38)}`),
  {
    name: 'times that hardly ever come',
    parts: {
      nodes: [source],
      triggers: many(8_000, (index) => ({
        id: `t${index}`,
        type: 'schedule',
        config: { cron: '59 59 23 29 2 MON', timezone: 'Europe/Berlin' },
      })),
    },
    inputs: {},
  },
  { name: 'inputs', parts: { nodes: [source] }, inputs: wide },
];
