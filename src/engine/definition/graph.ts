import type { WorkflowNode } from '../../protocol/running/workflows.ts';

/** An edge between two nodes, given by their index in the definition. */
export interface Arc {
  readonly source: number;
  readonly target: number;
}

/** Kahn's algorithm; ties are broken by node id. Maps each node's index to its rank; nodes on a cycle are omitted. */
export function topologicalOrder(
  nodes: readonly Pick<WorkflowNode, 'id'>[],
  edges: readonly Arc[],
): Map<number, number> {
  const unmet = nodes.map(() => 0);
  const targets = nodes.map((): number[] => []);
  for (const { source, target } of edges) {
    unmet[target]!++;
    targets[source]!.push(target);
  }
  const byId = (a: number, b: number): number => (nodes[a]!.id < nodes[b]!.id ? -1 : 1);
  const order = new Map<number, number>();
  let layer = nodes.map((_node, position) => position).filter((position) => unmet[position] === 0);
  while (layer.length > 0) {
    const following: number[] = [];
    for (const position of layer.sort(byId)) {
      order.set(position, order.size);
      for (const target of targets[position]!) if (--unmet[target]! === 0) following.push(target);
    }
    layer = following;
  }
  return order;
}

/**
 * Finds the edges that close a cycle, in a depth-first walk from the start nodes; without them the graph is acyclic. A
 * cycle that no start node reaches is entered at the node listed first.
 */
export function backEdges<A extends Arc>(nodes: readonly WorkflowNode[], edges: readonly A[]): Set<A> {
  const outgoing = Map.groupBy(edges, ({ source }) => source);
  const targets = new Set(edges.map(({ target }) => target));
  const positions = nodes.map((_node, position) => position);
  const byId = positions.toSorted((a, b) => (nodes[a]!.id < nodes[b]!.id ? -1 : 1));
  const rank = new Map(byId.map((position, place) => [position, place]));
  const back = new Set<A>();
  const state = new Map<number, 'on path' | 'done'>();
  for (const start of [...byId.filter((position) => !targets.has(position)), ...positions]) {
    if (!state.has(start)) walk(start);
  }
  return back;

  /** Uses an explicit stack, because a definition may be deeper than the call stack. */
  function walk(start: number): void {
    const path: { readonly node: number; readonly rest: A[] }[] = [];
    const enter = (node: number): void => {
      state.set(node, 'on path');
      const rest = [...(outgoing.get(node) ?? [])].sort((a, b) => rank.get(b.target)! - rank.get(a.target)!);
      path.push({ node, rest });
    };
    enter(start);
    for (let here = path.at(-1); here; here = path.at(-1)) {
      const edge = here.rest.pop();
      if (!edge) {
        state.set(here.node, 'done');
        path.pop();
      } else if (state.get(edge.target) === 'on path') back.add(edge);
      else if (!state.has(edge.target)) enter(edge.target);
    }
  }
}
