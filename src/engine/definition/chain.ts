import { Compile } from 'typebox/compile';
import type { ExpandChainReply, FragmentEdge, WorkflowChain } from '../../protocol/ai/packs.ts';
import { isObject, type JsonObject, own } from '../../protocol/format/json.ts';
import { once } from '../../protocol/format/once.ts';
import {
  type EdgeCondition,
  PortValue,
  type WorkflowEdge,
  type WorkflowNode,
} from '../../protocol/running/workflows.ts';

/** The nodes and edges that a workflow chain expands to, with their new ids. */
export type Expansion = Pick<ExpandChainReply, 'nodes' | 'edges'>;

const TOKEN = /\{\{params\.([a-zA-Z_][a-zA-Z0-9_]*)\}\}/g;
const SINGLE_TOKEN = new RegExp(`^${TOKEN.source}$`);
/** Horizontal distance, in pixels, between nodes that have no position of their own. */
const STEP = 220;

/** Names of the parameters that a chain refers to with `{{params.name}}`. */
export function parametersUsed({ dag }: WorkflowChain): Set<string> {
  return new Set([...tokensOf(dag)].map(([, name]) => name!));
}

/** Estimates the size of an expansion in characters of JSON, so that a huge one is refused before it is built. */
export function expandedSize({ dag }: WorkflowChain, parameters: JsonObject): number {
  const sizes = new Map(Object.entries(parameters).map(([name, value]) => [name, JSON.stringify(value).length]));
  let size = JSON.stringify(dag).length;
  for (const [, name] of tokensOf(dag)) size += sizes.get(name!) ?? 0;
  return size;
}

function tokensOf({ nodes }: WorkflowChain['dag']): IterableIterator<RegExpExecArray> {
  return JSON.stringify(nodes.map(({ config, inputs }) => ({ config, inputs }))).matchAll(TOKEN);
}

/** Fills parameters into a chain. Deterministic: the same chain, parameters and expansion id give the same result. */
export function expandChain(chain: WorkflowChain, parameters: JsonObject, expansionId: string): Expansion {
  const naming = namingOf(chain, expansionId);
  const { rename, endOf } = naming;
  const { capabilities = [], dag } = chain;
  const nodes = dag.nodes.map((node) => ({
    ...node,
    id: rename(node.id),
    ...(node.config ? { config: fill(node.config, parameters) as JsonObject } : {}),
    ...(node.inputs ? { inputs: reconnected(fill(node.inputs, parameters) as JsonObject, naming) } : {}),
    ...(capabilities.length > 0 ? { capabilities: [...capabilities] } : {}),
  }));
  const edges = edgesOf(chain).map((edge) => ({
    ...edge,
    from: formatEnd(endOf(edge.from)),
    to: formatEnd(endOf(edge.to)),
  }));
  return { nodes, edges };
}

function edgesOf({ dag }: WorkflowChain): readonly FragmentEdge[] {
  return dag.edges ?? [];
}

/** A string that is exactly one token becomes the parameter's value, of any type; within other text it becomes text. */
function fill(value: unknown, parameters: JsonObject): unknown {
  if (typeof value === 'string') {
    const [, name] = SINGLE_TOKEN.exec(value) ?? [];
    if (name !== undefined) return Object.hasOwn(parameters, name) ? parameters[name] : '';
    return value.replace(TOKEN, (_token, inner: string) => textOf(own(parameters, inner)));
  }
  if (Array.isArray(value)) return value.map((item) => fill(item, parameters));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, fill(member, parameters)]));
}

function textOf(value: unknown): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

interface EdgeEnd {
  readonly nodeId: string;
  readonly port: string | undefined;
}

function formatEnd({ nodeId, port }: EdgeEnd): string {
  return port === undefined ? nodeId : `${nodeId}.${port}`;
}

/** Maps the ids of a chain to those of its expansion. */
interface Naming {
  rename(nodeId: string): string;
  /** Renames an id of this chain; an id from outside the chain stays unchanged. */
  renameIfInside(nodeId: string): string;
  /** Parses one end of an edge, `node` or `node.port`. */
  endOf(reference: string): EdgeEnd;
}

function namingOf({ chainId, dag }: WorkflowChain, expansionId: string): Naming {
  const prefix = `${chainId.replaceAll('.', '_')}_${expansionId}_`;
  const inside = new Set(dag.nodes.map(({ id }) => id));
  const rename = (nodeId: string): string => prefix + nodeId;
  const renameIfInside = (nodeId: string): string => (inside.has(nodeId) ? rename(nodeId) : nodeId);
  return {
    rename,
    renameIfInside,
    // The first dot separates node and port, unless the whole reference is a node's id.
    endOf: (reference) => {
      const dot = reference.indexOf('.');
      if (dot < 0 || inside.has(reference)) return { nodeId: renameIfInside(reference), port: undefined };
      return { nodeId: renameIfInside(reference.slice(0, dot)), port: reference.slice(dot + 1) };
    },
  };
}

const portValue = once(() => Compile(PortValue));

/** Inputs whose connections to nodes of the chain have the new ids. */
function reconnected(inputs: JsonObject, { renameIfInside }: Naming): JsonObject {
  const ports = Object.entries(inputs).map(([port, value]) => {
    const isConnection = portValue().Check(value) && value.type === 'connection';
    return [port, isConnection ? { ...value, nodeId: renameIfInside(value.nodeId) } : value];
  });
  return Object.fromEntries(ports);
}

/**
 * Converts an expansion to the format of workflow definitions, in which every node has a position and none has
 * capabilities.
 */
export function asWorkflow(
  chain: WorkflowChain,
  { nodes }: Expansion,
  expansionId: string,
): ExpandChainReply['workflow'] {
  const naming = namingOf(chain, expansionId);
  const asPort = (value: unknown): PortValue => (portValue().Check(value) ? value : { type: 'static', value });
  const asNode = (
    { capabilities: _capabilities, ...node }: Expansion['nodes'][number],
    index: number,
  ): WorkflowNode => ({
    ...node,
    name: node.name || node.id,
    position: { x: index * STEP, y: 0, ...node.position },
    config: node.config ?? {},
    inputs: Object.fromEntries(Object.entries(node.inputs ?? {}).map(([port, value]) => [port, asPort(value)])),
  });
  return { nodes: nodes.map(asNode), edges: edgesOf(chain).map((edge, index) => asEdge(edge, index, naming)) };
}

function asEdge({ from, to, condition, triggerRule }: FragmentEdge, index: number, naming: Naming): WorkflowEdge {
  const [source, target] = [naming.endOf(from), naming.endOf(to)];
  return {
    id: naming.rename(`edge-${index}`),
    sourceNodeId: source.nodeId,
    targetNodeId: target.nodeId,
    ...(source.port === undefined ? {} : { sourceOutput: source.port }),
    ...(target.port === undefined ? {} : { targetInput: target.port }),
    ...(condition === undefined ? {} : { condition: asCondition(condition) }),
    ...(triggerRule === undefined ? {} : { triggerRule }),
  };
}

/** A condition given as text is an expression. */
function asCondition(condition: string | EdgeCondition): EdgeCondition {
  return typeof condition === 'string' ? { type: 'expression', expression: condition } : condition;
}
