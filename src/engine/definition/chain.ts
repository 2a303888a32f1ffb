import { Compile } from 'typebox/compile';
import type { ExpandChainReply, FragmentEdge, WorkflowChain } from '../../protocol/ai/packs.ts';
import { isObject, type JsonObject, own } from '../../protocol/format/json.ts';
import {
  type EdgeCondition,
  PortValue,
  type WorkflowEdge,
  type WorkflowNode,
} from '../../protocol/running/workflows.ts';

/** What a chain comes to: nodes and edges that stand by themselves, as the chain writes them. */
export type Expansion = Pick<ExpandChainReply, 'nodes' | 'edges'>;

const TOKEN = /\{\{params\.([a-zA-Z_][a-zA-Z0-9_]*)\}\}/g;
const WHOLE = new RegExp(`^${TOKEN.source}$`);
/** How far nodes that have no place of their own are drawn apart. */
const STEP = 220;

/** The parameters that a chain makes use of. */
export function parametersUsed({ dag }: WorkflowChain): Set<string> {
  return new Set([...tokensOf(dag)].map(([, name]) => name!));
}

/** How many characters of JSON the expansion will have, about: each token may stand for much. */
export function expandedSize({ dag }: WorkflowChain, parameters: JsonObject): number {
  const sizes = new Map(Object.entries(parameters).map(([name, value]) => [name, JSON.stringify(value).length]));
  let size = JSON.stringify(dag).length;
  for (const [, name] of tokensOf(dag)) size += sizes.get(name!) ?? 0;
  return size;
}

function tokensOf({ nodes }: WorkflowChain['dag']): IterableIterator<RegExpExecArray> {
  return JSON.stringify(nodes.map(({ config, inputs }) => ({ config, inputs }))).matchAll(TOKEN);
}

/** Fills a chain in. The same chain, parameters and id give the same expansion. */
export function expandChain(chain: WorkflowChain, parameters: JsonObject, expansionId: string): Expansion {
  const { rename, endOf } = namingOf(chain, expansionId);
  const { capabilities = [], dag } = chain;
  const nodes = dag.nodes.map((node) => ({
    ...node,
    id: rename(node.id),
    ...(node.config ? { config: fill(node.config, parameters) as JsonObject } : {}),
    ...(node.inputs ? { inputs: fill(node.inputs, parameters) as JsonObject } : {}),
    ...(capabilities.length > 0 ? { capabilities: [...capabilities] } : {}),
  }));
  const edges = edgesOf(chain).map((edge) => ({
    ...edge,
    from: written(endOf(edge.from)),
    to: written(endOf(edge.to)),
  }));
  return { nodes, edges };
}

function edgesOf({ dag }: WorkflowChain): readonly FragmentEdge[] {
  return dag.edges ?? [];
}

/** A value that is one token becomes what the token stands for, whatever its type; inside text it becomes text. */
function fill(value: unknown, parameters: JsonObject): unknown {
  if (typeof value === 'string') {
    const [, name] = WHOLE.exec(value) ?? [];
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

function written({ nodeId, port }: EdgeEnd): string {
  return port === undefined ? nodeId : `${nodeId}.${port}`;
}

/** What the nodes of an expansion are called, and what edges and ports that name them come to. */
interface Naming {
  rename(nodeId: string): string;
  /** The same for a name that may be of somebody else's node, which stays as it is. */
  renameOwn(nodeId: string): string;
  endOf(reference: string): EdgeEnd;
}

function namingOf({ chainId, dag }: WorkflowChain, expansionId: string): Naming {
  const prefix = `${chainId.replaceAll('.', '_')}_${expansionId}_`;
  const inside = new Set(dag.nodes.map(({ id }) => id));
  const rename = (nodeId: string): string => prefix + nodeId;
  const renameOwn = (nodeId: string): string => (inside.has(nodeId) ? rename(nodeId) : nodeId);
  return {
    rename,
    renameOwn,
    // The first dot parts a node from its port, unless a node has a name like that.
    endOf: (reference) => {
      const dot = reference.indexOf('.');
      if (dot < 0 || inside.has(reference)) return { nodeId: renameOwn(reference), port: undefined };
      return { nodeId: renameOwn(reference.slice(0, dot)), port: reference.slice(dot + 1) };
    },
  };
}

const portValue = Compile(PortValue);

/** An expansion in the shape of workflow definitions, where everything has a place and traits have none. */
export function asWorkflow(
  chain: WorkflowChain,
  { nodes }: Expansion,
  expansionId: string,
): ExpandChainReply['workflow'] {
  const naming = namingOf(chain, expansionId);
  const asPort = (value: unknown): PortValue => {
    if (!portValue.Check(value)) return { type: 'static', value };
    return value.type === 'connection' ? { ...value, nodeId: naming.renameOwn(value.nodeId) } : value;
  };
  const asNode = ({ capabilities: _traits, ...node }: Expansion['nodes'][number], index: number): WorkflowNode => ({
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

/** A condition that is only text is an expression. */
function asCondition(condition: string | EdgeCondition): EdgeCondition {
  return typeof condition === 'string' ? { type: 'expression', expression: condition } : condition;
}
