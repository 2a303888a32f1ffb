import type { AuthoredWorkflow, WorkflowDefinition, WorkflowEdge } from '../../protocol/running/workflows.ts';
import { topologicalOrder } from './graph.ts';

/** How far apart nodes are drawn that have no position of their own. */
const COLUMN = 240;
const ROW = 120;

/**
 * Fills in what an author left out: names are ids, positions follow the edges, edges are named by their ends. The same
 * text always gives the same definition, so that registering it again makes no new version.
 */
export function completeWorkflow({ $schema: _schema, ...authored }: AuthoredWorkflow): WorkflowDefinition {
  const { name = authored.id, triggers = [], variables = [], metadata = {}, settings = {} } = authored;
  const edges = named(authored.edges ?? []);
  const places = layout(authored.nodes, edges);
  const nodes = authored.nodes.map((node, index) => ({
    ...node,
    name: node.name ?? node.id,
    position: node.position ?? places[index]!,
    config: node.config ?? {},
    inputs: node.inputs ?? {},
  }));
  return { ...authored, name, nodes, edges, triggers, variables, metadata, settings };
}

function named(edges: NonNullable<AuthoredWorkflow['edges']>): WorkflowEdge[] {
  const taken = new Set(edges.flatMap(({ id }) => id ?? []));
  return edges.map((edge) => {
    if (edge.id !== undefined) return { ...edge, id: edge.id };
    const base = `${edge.sourceNodeId}-${edge.targetNodeId}`;
    let id = base;
    for (let count = 2; taken.has(id); count += 1) id = `${base}-${count}`;
    taken.add(id);
    return { ...edge, id };
  });
}

/** One column for each step from the start; nodes of a cycle and of unknown edges stay in the first. */
function layout(nodes: AuthoredWorkflow['nodes'], edges: readonly WorkflowEdge[]): { x: number; y: number }[] {
  const index = new Map(nodes.map(({ id }, position) => [id, position]));
  const arcs = edges.flatMap(({ sourceNodeId, targetNodeId }) => {
    const [source, target] = [index.get(sourceNodeId), index.get(targetNodeId)];
    return source === undefined || target === undefined ? [] : [{ source, target }];
  });
  const outgoing = Map.groupBy(arcs, ({ source }) => source);
  const columns = nodes.map(() => 0);
  for (const source of topologicalOrder(nodes, arcs).keys()) {
    for (const { target } of outgoing.get(source) ?? [])
      columns[target] = Math.max(columns[target]!, columns[source]! + 1);
  }
  const heights = new Map<number, number>();
  return columns.map((column) => {
    const row = heights.get(column) ?? 0;
    heights.set(column, row + 1);
    return { x: column * COLUMN, y: row * ROW };
  });
}
