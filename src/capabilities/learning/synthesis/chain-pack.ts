import type { Plan, PlannedEdge } from '../../../engine/definition/plan.ts';
import type { FragmentEdge, FragmentNode, WorkflowChainPackManifest } from '../../../protocol/ai/packs.ts';
import { deepEqual, isObject, type JsonObject } from '../../../protocol/format/json.ts';
import type { PortValue, WorkflowNode } from '../../../protocol/running/workflows.ts';
import { redactValue } from '../../../system/redaction.ts';

/** Name and version of a drafted pack. */
export interface PackIdentity {
  readonly name: string;
  readonly version: string;
}

/** A path in one workflow: its nodes, in order. */
export interface Occurrence {
  readonly plan: Plan;
  readonly nodeIds: readonly string[];
}

/** A path, and some of the workflows that have it. */
interface FoundPath {
  readonly types: readonly string[];
  readonly support: number;
  readonly occurrences: readonly Occurrence[];
}

/** The protocol versions that drafted packs support. */
export const ENGINES = { openwop: '>=1.1.0 <2.0.0' };

const EXAMPLES_MAX = 3;
const EXAMPLE_CHARS_MAX = 200;
const CHAIN_ID = 'learned';

/** Makes a chain from a path: what is the same in all workflows stays, what varies becomes a parameter. */
export function chainPackOf(
  path: FoundPath,
  identity: PackIdentity,
  label: string,
  redact: (text: string) => string = (text) => text,
): WorkflowChainPackManifest {
  const lifted = new Parameters(redact);
  const nodes = path.types.map((typeId, step) => fragmentNode(path, typeId, step, lifted));
  return {
    ...identity,
    kind: 'workflow-chain',
    description: `Learned from ${path.support} runs: ${path.types.join(', ')}.`.slice(0, 1_024),
    engines: ENGINES,
    chains: [
      {
        chainId: CHAIN_ID,
        version: identity.version,
        label,
        description: `Does ${path.types.join(', then ')}.`,
        parameters: lifted.schema(),
        dag: { nodes, edges: path.types.slice(1).map((_, index) => fragmentEdge(path, index)) },
      },
    ],
  };
}

/** The node of a step in every workflow that has the path. */
function nodesAt({ occurrences }: FoundPath, step: number): WorkflowNode[] {
  return occurrences.map(({ plan, nodeIds }) => plan.node(nodeIds[step]!)!.node);
}

/** Ids in fragments have no dots: a dot separates the node from its port. */
function idOf(step: number): string {
  return `step${step + 1}`;
}

function fragmentNode(path: FoundPath, typeId: string, step: number, lifted: Parameters): FragmentNode {
  const nodes = nodesAt(path, step);
  const config = merge(
    nodes.map((node) => node.config),
    idOf(step),
    lifted,
  ) as JsonObject;
  const inputs = mergePorts(path, step, lifted);
  return {
    id: idOf(step),
    typeId,
    name: nodes[0]!.name,
    ...(Object.keys(config).length === 0 ? {} : { config }),
    ...(Object.keys(inputs).length === 0 ? {} : { inputs }),
  };
}

/**
 * Merges values. Objects are merged by member; a member that most of them lack is left out. Other differences become
 * parameters, and so do values that must not be shown.
 */
function merge(values: readonly unknown[], name: string, lifted: Parameters): unknown {
  const [first] = values;
  if (values.every(isObject)) return mergeMembers(values, name, lifted);
  const isSame = values.every((value) => deepEqual(value, first));
  return isSame && lifted.isShowable(first) && !hasToken(first) ? first : lifted.add(name, values);
}

function mergeMembers(values: readonly JsonObject[], name: string, lifted: Parameters): JsonObject {
  const keys = new Set(values.flatMap((value) => Object.keys(value)));
  const members = [...keys].flatMap((key) => {
    const present = values.filter((value) => Object.hasOwn(value, key)).map((value) => value[key]);
    if (present.length * 2 < values.length) return [];
    const inner = `${name}_${key}`;
    const isEverywhere = present.length === values.length;
    return [[key, isEverywhere ? merge(present, inner, lifted) : lifted.add(inner, present)] as const];
  });
  return Object.fromEntries(members);
}

/** Whether the value contains a parameter token, which would be replaced. */
function hasToken(value: unknown): boolean {
  return JSON.stringify(value ?? null).includes('{{params.');
}

function mergePorts(path: FoundPath, step: number, lifted: Parameters): JsonObject {
  const nodes = nodesAt(path, step);
  const ports = new Set(nodes.flatMap(({ inputs }) => Object.keys(inputs)));
  return Object.fromEntries(
    [...ports].flatMap((port) => {
      const present = path.occurrences.flatMap((occurrence, index) => {
        const value = nodes[index]!.inputs[port];
        return value === undefined ? [] : [innerPort(value, occurrence)];
      });
      if (present.length * 2 < nodes.length) return [];
      return [[port, mergePort(present, present.length === nodes.length, `${idOf(step)}_${port}`, lifted)]];
    }),
  );
}

/** A port with the ids of the fragment; undefined if it refers to a node outside. */
function innerPort(value: PortValue, { nodeIds }: Occurrence): PortValue | undefined {
  // An expression may refer to any node, so it is valid in its own workflow only.
  if (value.type === 'expression') return undefined;
  if (value.type !== 'connection') return value;
  const step = nodeIds.indexOf(value.nodeId);
  return step < 0 ? undefined : { ...value, nodeId: idOf(step) };
}

function mergePort(
  values: readonly (PortValue | undefined)[],
  isEverywhere: boolean,
  name: string,
  lifted: Parameters,
): unknown {
  const statics = values.flatMap((value) => (value?.type === 'static' ? [value.value] : []));
  if (isEverywhere && statics.length === values.length) {
    return { type: 'static', value: merge(statics, name, lifted) };
  }
  const [first] = values;
  const isSame = first !== undefined && values.every((value) => deepEqual(value, first));
  return isEverywhere && isSame ? first : lifted.add(name, statics, 'A value, or where it comes from (a port value).');
}

/** Keeps the ports and rule of an edge if they are the same in all workflows. */
function fragmentEdge(path: FoundPath, step: number): FragmentEdge {
  const edges = path.occurrences.map((occurrence) => edgeAfter(occurrence, step));
  const common = <T>(of: (edge: PlannedEdge['edge']) => T): T | undefined =>
    edges.every((edge) => of(edge) === of(edges[0]!)) ? of(edges[0]!) : undefined;
  const [output, input, triggerRule] = [
    common(({ sourceOutput }) => sourceOutput),
    common(({ targetInput }) => targetInput),
    common(({ triggerRule: rule }) => rule),
  ];
  return {
    from: output ? `${idOf(step)}.${output}` : idOf(step),
    to: input ? `${idOf(step + 1)}.${input}` : idOf(step + 1),
    ...(triggerRule === undefined ? {} : { triggerRule }),
  };
}

function edgeAfter({ plan, nodeIds }: Occurrence, step: number): PlannedEdge['edge'] {
  const { outgoing } = plan.node(nodeIds[step]!)!;
  const isNext = ({ target, condition }: PlannedEdge): boolean =>
    !condition && plan.nodes[target]!.node.id === nodeIds[step + 1];
  return outgoing.find(isNext)!.edge;
}

/** The parameters of a chain, with examples of their values. */
class Parameters {
  readonly #properties = new Map<string, JsonObject>();
  readonly #redact: (text: string) => string;

  constructor(redact: (text: string) => string) {
    this.#redact = redact;
  }

  /** Whether a value has neither secrets nor personal data in it. */
  isShowable(value: unknown): boolean {
    return deepEqual(redactValue(value), value) && deepEqual(redactValue(value, this.#redact), value);
  }

  /** Adds a parameter and returns its token. */
  add(wanted: string, values: readonly unknown[], description?: string): string {
    const name = this.#freeName(wanted);
    const type = typeOf(values);
    this.#properties.set(name, {
      ...(type === undefined || description ? {} : { type }),
      ...(description === undefined ? {} : { description }),
      ...examplesOf(values, (value) => this.isShowable(value)),
    });
    return `{{params.${name}}}`;
  }

  schema(): JsonObject {
    const names = [...this.#properties.keys()];
    return {
      type: 'object',
      properties: Object.fromEntries(this.#properties),
      required: names,
      additionalProperties: false,
    };
  }

  #freeName(wanted: string): string {
    const name = wanted.replaceAll(/[^a-zA-Z0-9_]+/g, '_');
    for (let count = 2, free = name; ; count++) {
      if (!this.#properties.has(free)) return free;
      free = `${name}_${count}`;
    }
  }
}

function typeOf(values: readonly unknown[]): string | undefined {
  const types = new Set(values.map(jsonType));
  const [only] = types;
  return types.size === 1 ? only : undefined;
}

function jsonType(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value;
}

/** Examples that are short and may be shown. */
function examplesOf(values: readonly unknown[], isShowable: (value: unknown) => boolean): { examples?: unknown[] } {
  const texts = new Map(values.map((value) => [JSON.stringify(value ?? null), value] as const));
  const examples = [...texts]
    .filter(([text, value]) => text.length <= EXAMPLE_CHARS_MAX && isShowable(value))
    .slice(0, EXAMPLES_MAX)
    .map(([, value]) => value ?? null);
  return examples.length === 0 ? {} : { examples };
}
