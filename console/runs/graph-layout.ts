import dagre from '@dagrejs/dagre';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';

/** The size of a drawn node. */
export const NODE = { width: 168, height: 48 } as const;

/** Left to right, or top to bottom. */
export type Direction = 'LR' | 'TB';
/** Where the nodes of a workflow are drawn. */
export interface Layout {
  readonly places: ReadonlyMap<string, { readonly x: number; readonly y: number }>;
  readonly direction: Direction;
  /** Too large to be seen as a whole: only what is in sight is drawn. */
  readonly isLarge: boolean;
}

type Graph = Pick<WorkflowDefinition, 'nodes' | 'edges'>;
type Laid = Pick<Layout, 'places'> & { readonly width: number; readonly height: number };

/** The layout program calls itself for each node of a line, so a long one would exhaust the stack. */
const LARGE = 400;
const GAP = { beside: 16, between: 40 } as const;

/** Finds a place for each node of a graph that is shown in a box of this size. */
export function layoutOf(graph: Graph, width: number, height: number): Layout {
  if (graph.nodes.length > LARGE) return { places: inLines(graph, width / height), direction: 'LR', isLarge: true };
  // Of the two directions, the one in which the graph can be shown larger.
  const [across, down] = [layOut(graph, 'LR'), layOut(graph, 'TB')];
  const zoomOf = (laid: Laid): number => Math.min(width / laid.width, height / laid.height);
  return zoomOf(across) >= Math.min(1, zoomOf(down))
    ? { places: across.places, direction: 'LR', isLarge: false }
    : { places: down.places, direction: 'TB', isLarge: false };
}

function layOut({ nodes, edges }: Graph, rankdir: Direction): Laid {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir, nodesep: GAP.beside, ranksep: GAP.between });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id } of nodes) graph.setNode(id, { ...NODE });
  for (const { sourceNodeId, targetNodeId } of edges) graph.setEdge(sourceNodeId, targetNodeId);
  dagre.layout(graph);
  const { width = 1, height = 1 } = graph.graph();
  const places = nodes.map(({ id }): [string, { x: number; y: number }] => {
    const { x = 0, y = 0 } = graph.node(id) ?? {};
    return [id, { x: x - NODE.width / 2, y: y - NODE.height / 2 }];
  });
  return { places: new Map(places), width: Math.max(1, width), height: Math.max(1, height) };
}

/** The ranks of a large graph as columns, broken into lines like text. */
function inLines(graph: Graph, shape: number): Layout['places'] {
  const columns = ranksOf(graph);
  const [stepX, stepY] = [NODE.width + GAP.between, NODE.height + GAP.beside];
  const perLine = Math.max(1, Math.round(Math.sqrt((graph.nodes.length * shape * stepY) / stepX)));
  const places = new Map<string, { x: number; y: number }>();
  let top = 0;
  for (let first = 0; first < columns.length; first += perLine) {
    const line = columns.slice(first, first + perLine);
    line.forEach((column, x) => {
      column.forEach((id, y) => {
        places.set(id, { x: x * stepX, y: top + y * stepY });
      });
    });
    top += line.reduce((most, { length }) => Math.max(most, length), 0) * stepY + GAP.between;
  }
  return places;
}

/** Nodes by the length of the longest way to them. */
function ranksOf({ nodes, edges }: Graph): readonly (readonly string[])[] {
  const targets = Map.groupBy(edges, ({ sourceNodeId }) => sourceNodeId);
  const open = new Map(nodes.map(({ id }) => [id, 0]));
  for (const { targetNodeId } of edges) open.set(targetNodeId, (open.get(targetNodeId) ?? 0) + 1);
  const ranks: string[][] = [];
  let rank = nodes.map(({ id }) => id).filter((id) => open.get(id) === 0);
  while (rank.length > 0) {
    ranks.push(rank);
    const next: string[] = [];
    for (const { targetNodeId } of rank.flatMap((id) => targets.get(id) ?? [])) {
      const left = (open.get(targetNodeId) ?? 0) - 1;
      open.set(targetNodeId, left);
      if (left === 0) next.push(targetNodeId);
    }
    rank = next;
  }
  return ranks;
}
