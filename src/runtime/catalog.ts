import type { TSchema } from 'typebox';
import type { Validator } from 'typebox/compile';
import type { ConfigProblem, NodeCatalog } from '../engine/definition/check.ts';
import { compiledSchema } from '../protocol/format/compiled-schema.ts';
import { isObject, own } from '../protocol/format/json.ts';
import { nearest } from '../protocol/format/nearest.ts';
import { Closed } from '../protocol/format/schema.ts';
import { unknownKeys } from '../protocol/format/unknown-keys.ts';
import type { WorkflowNode } from '../protocol/running/workflows.ts';
import type { NodeType } from './node-type.ts';

/** Node types that need an optional capability, with its name in discovery: it is named when the type is unknown. */
const CAPABILITY_OF_TYPE: Record<string, string> = {
  'core.conversationGate': 'conversationPrimitive',
  'core.orchestrator.supervisor': 'orchestrator.supported',
  'core.dispatch': 'dispatch.supported',
};

/** The node types of this host, by type id. */
export interface Catalog extends NodeCatalog {
  readonly types: readonly NodeType[];
  get(typeId: string): NodeType | undefined;
  /** Whether nothing after the node may happen without an approval or a verdict that the node asks for. */
  asksApproval(node: Pick<WorkflowNode, 'typeId' | 'config'>): boolean;
}

/** The config of a type that declares none. */
const NO_KEYS = Closed({});

/** Finds the implementation of types that are not part of the host, such as those that workers serve. */
export type OtherTypes = (typeId: string) => NodeType | undefined;

/**
 * Builds a catalog. Config validators are compiled on first use, because most types are never used. Types that are not
 * part of the host can be executed, but nothing is known about them here.
 */
export function catalogOf(types: readonly NodeType[], others: OtherTypes = () => undefined): Catalog {
  const byId = new Map(types.map((type) => [type.typeId, type]));
  return {
    // Where a type is defined twice, the later one is meant: conformance suites replace some.
    types: [...byId.values()],
    has: (typeId) => byId.has(typeId),
    get: (typeId) => byId.get(typeId) ?? others(typeId),
    isGate: (typeId) => byId.get(typeId)?.isGate === true,
    asksApproval: ({ typeId, config }) => {
      const type = byId.get(typeId);
      return type?.isGate === true || type?.asksApproval?.(config) === true;
    },
    readsEnvelopes: (typeId) => byId.get(typeId)?.readsEnvelopes === true,
    capabilityFor: (typeId) => own(CAPABILITY_OF_TYPE, typeId),
    nearestTo: (typeId) => {
      // By the last name: authors leave out what stands before it, and a long prefix makes strangers look alike.
      const meant = nearest(lastName(typeId), [...byId.keys()].map(lastName));
      return [...byId.keys()].find((id) => lastName(id) === meant);
    },
    checkConfig: (node) => {
      const type = byId.get(node.typeId);
      if (!type) return [];
      const unknown = unknownKeys(type.config ?? NO_KEYS, node.config);
      const problems = withMisfits(unknown, compiledSchema(type.config ?? NO_KEYS), node.config);
      if (problems.length > unknown.length) return problems;
      const found = type.check?.(node.config) ?? [];
      return [...found, ...elsewhere(unknown, found)];
    },
    checkInputs: ({ typeId, inputs }) => byId.get(typeId)?.checkInputs?.(inputs) ?? [],
    outputsOf: (node) => byId.get(node.typeId)?.outputs?.(node),
    usualOutputsOf: (node) => byId.get(node.typeId)?.usualOutputs?.(node),
    inputsOf: ({ typeId }) => byId.get(typeId)?.inputs,
    requiredInputsOf: ({ typeId }) => byId.get(typeId)?.requiredInputs ?? [],
    writtenBy: (node) => byId.get(node.typeId)?.writes?.(node) ?? [],
    schemasIn: (node) => byId.get(node.typeId)?.schemas?.(node.config) ?? [],
  };
}

function lastName(typeId: string): string {
  return typeId.split('.').at(-1)!;
}

/** Lists unknown keys and then what else is wrong with a value, as for the config of a node. */
export function configProblems(schema: TSchema, validator: Validator, value: unknown): ConfigProblem[] {
  return withMisfits(unknownKeys(schema, value), validator, value);
}

function withMisfits(unknown: readonly ConfigProblem[], validator: Validator, value: unknown): ConfigProblem[] {
  return [...unknown, ...elsewhere(schemaProblemsByPath(validator, value), unknown)];
}

function elsewhere(problems: readonly ConfigProblem[], reported: readonly ConfigProblem[]): ConfigProblem[] {
  return problems.filter(({ path }) => !reported.some((other) => other.path === path));
}

/** Validates a value and lists every problem with a JSON pointer, also to a member that is missing or unknown. */
export function schemaProblemsByPointer(validator: Validator, value: unknown): { path: string; message: string }[] {
  if (validator.Check(value)) return [];
  const errors = validator.Errors(withShortLists(value));
  if (errors.length === 0) return [{ path: '', message: 'has a long list that does not match its schema' }];
  return errors.flatMap(({ keyword, instancePath, message, params }) => {
    if (keyword === 'required') {
      const { requiredProperties } = params as { requiredProperties: string[] };
      return requiredProperties.map((name) => ({ path: `${instancePath}/${name}`, message: 'is missing' }));
    }
    // The validator reports each member separately as well.
    if (keyword === 'additionalProperties' || keyword === 'anyOf') return [];
    return [{ path: instancePath, message: messageFor(keyword, params) ?? message }];
  });
}

/** Items of a list that a report goes through: the validator's report on duplicates takes time quadratic in them. */
const REPORTED_ITEMS_MAX = 1_000;

function withShortLists(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, REPORTED_ITEMS_MAX).map(withShortLists);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withShortLists(member)]));
}

/** Messages for keywords whose default message does not name the allowed values. */
function messageFor(keyword: string, params: object): string | undefined {
  const { allowedValues, allowedValue } = params as { allowedValues?: unknown[]; allowedValue?: unknown };
  if (keyword === 'boolean') return 'is not known here';
  if (keyword === 'enum') return `must be one of ${allowedValues!.join(', ')}`;
  return keyword === 'const' ? `must be ${JSON.stringify(allowedValue)}` : undefined;
}

/** Validates a value and lists every problem with a dotted path, as the problems of a workflow definition have it. */
export function schemaProblemsByPath(validator: Validator, value: unknown): ConfigProblem[] {
  return schemaProblemsByPointer(validator, value).map(({ path, message }) => ({
    path: path.replaceAll('/', '.'),
    message,
  }));
}
