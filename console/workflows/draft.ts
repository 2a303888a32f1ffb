import type {
  PortValue,
  WorkflowDefinition,
  WorkflowEdge,
  WorkflowNode,
} from '../../src/protocol/running/workflows.ts';

/** A workflow that is being edited; the host has the last word on whether it is one. */
export type Draft = WorkflowDefinition;

/** What is selected in the editor. */
export type Selection = { readonly node: string } | { readonly edge: string } | undefined;

/** The draft of a new workflow. */
export const EMPTY_DRAFT: Draft = {
  id: '',
  name: '',
  version: '1',
  nodes: [],
  edges: [],
  triggers: [],
  variables: [],
  metadata: {},
  settings: {},
};

const STEP_X = 260;

/** An id for a workflow, made from its name. */
export function idFrom(name: string): string {
  const text = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+|-+$/g, '');
  return text.slice(0, 64);
}

/** A name that none of the others is: `delay`, `delay-2`, … */
export function freeName(wanted: string, taken: readonly string[]): string {
  let name = wanted;
  for (let count = 2; taken.includes(name); count += 1) name = `${wanted}-${count}`;
  return name;
}

/** Adds a node of a type; after the node that is selected, it is connected to it. */
export function addNode(draft: Draft, typeId: string, after: string | undefined): { draft: Draft; nodeId: string } {
  const wanted = typeId.split('.').at(-1) ?? typeId;
  const ids = draft.nodes.map(({ id }) => id);
  const nodeId = freeName(wanted, ids);
  const before = draft.nodes.find(({ id }) => id === after) ?? draft.nodes.at(-1);
  const position = freePlace(draft, before);
  const node: WorkflowNode = { id: nodeId, typeId, name: nodeId, position, config: {}, inputs: {} };
  const added = { ...draft, nodes: [...draft.nodes, node] };
  return { draft: after === undefined ? added : connect(added, after, nodeId), nodeId };
}

function freePlace({ nodes }: Draft, before: WorkflowNode | undefined): { x: number; y: number } {
  if (!before) return { x: 0, y: 0 };
  const x = before.position.x + STEP_X;
  let y = before.position.y;
  while (nodes.some(({ position }) => Math.abs(position.x - x) < STEP_X - 40 && Math.abs(position.y - y) < 100))
    y += 130;
  return { x, y };
}

/** Adds an edge, unless it is there. */
export function connect(draft: Draft, source: string, target: string): Draft {
  const isThere = draft.edges.some(
    ({ sourceNodeId, targetNodeId }) => sourceNodeId === source && targetNodeId === target,
  );
  if (isThere || source === target) return draft;
  const ids = draft.edges.map(({ id }) => id);
  const edge: WorkflowEdge = {
    id: freeName(`${source}-${target}`, ids),
    sourceNodeId: source,
    targetNodeId: target,
  };
  return { ...draft, edges: [...draft.edges, edge] };
}

/** Connects an output to an input; the node with the input then waits for the other. */
export function connectPorts(
  draft: Draft,
  from: { readonly node: string; readonly output: string },
  to: { readonly node: string; readonly input: string },
): Draft {
  const value: PortValue = { type: 'connection', nodeId: from.node, outputKey: from.output };
  const connected = connect(draft, from.node, to.node);
  return changeNode(connected, to.node, (node) => ({ ...node, inputs: { ...node.inputs, [to.input]: value } }));
}

/** Changes one node. */
export function changeNode(draft: Draft, nodeId: string, change: (node: WorkflowNode) => WorkflowNode): Draft {
  return { ...draft, nodes: draft.nodes.map((node) => (node.id === nodeId ? change(node) : node)) };
}

/** Changes one edge. */
export function changeEdge(draft: Draft, edgeId: string, change: (edge: WorkflowEdge) => WorkflowEdge): Draft {
  return { ...draft, edges: draft.edges.map((edge) => (edge.id === edgeId ? change(edge) : edge)) };
}

/** Removes a node with its edges; inputs that read its outputs stay, and are reported as problems. */
export function removeNode(draft: Draft, nodeId: string): Draft {
  return {
    ...draft,
    nodes: draft.nodes.filter(({ id }) => id !== nodeId),
    edges: draft.edges.filter(({ sourceNodeId, targetNodeId }) => sourceNodeId !== nodeId && targetNodeId !== nodeId),
  };
}

/** Removes an edge. */
export function removeEdge(draft: Draft, edgeId: string): Draft {
  return { ...draft, edges: draft.edges.filter(({ id }) => id !== edgeId) };
}

/** Gives a node another id, also in the edges and connections that name it. Expressions keep the old one. */
export function renameNode(draft: Draft, from: string, to: string): Draft {
  const named = (id: string): string => (id === from ? to : id);
  const renamed = (value: PortValue): PortValue =>
    value.type === 'connection' ? { ...value, nodeId: named(value.nodeId) } : value;
  return {
    ...draft,
    nodes: draft.nodes.map((node) => ({
      ...node,
      id: named(node.id),
      inputs: Object.fromEntries(Object.entries(node.inputs).map(([name, value]) => [name, renamed(value)])),
    })),
    edges: draft.edges.map((edge) => ({
      ...edge,
      sourceNodeId: named(edge.sourceNodeId),
      targetNodeId: named(edge.targetNodeId),
    })),
  };
}
