import type { WorkflowNode } from '../../protocol/running/workflows.ts';

/** An edge between nodes by their place in the definition. */
export interface Arc {
  readonly source: number;
  readonly target: number;
}

/** Kahn's algorithm, ties by node id. Nodes on a cycle get no place. */
export function topologicalOrder(nodes: readonly WorkflowNode[], edges: readonly Arc[]): Map<number, number> {
  const open = nodes.map(() => 0);
  const targets = nodes.map((): number[] => []);
  for (const { source, target } of edges) {
    open[target]!++;
    targets[source]!.push(target);
  }
  const byId = (a: number, b: number): number => (nodes[a]!.id < nodes[b]!.id ? -1 : 1);
  const order = new Map<number, number>();
  let layer = nodes.map((_node, position) => position).filter((position) => open[position] === 0);
  while (layer.length > 0) {
    const following: number[] = [];
    for (const position of layer.sort(byId)) {
      order.set(position, order.size);
      for (const target of targets[position]!) if (--open[target]! === 0) following.push(target);
    }
    layer = following;
  }
  return order;
}

/**
 * The edges that lead back to a node on the way to them, walking from where the workflow begins. Without them there is
 * no circle left. Where a circle has no way in, it begins with the node that its author put first.
 */
export function backEdges<A extends Arc>(nodes: readonly WorkflowNode[], edges: readonly A[]): Set<A> {
  const outgoing = Map.groupBy(edges, ({ source }) => source);
  const targets = new Set(edges.map(({ target }) => target));
  const positions = nodes.map((_node, position) => position);
  const byId = positions.toSorted((a, b) => (nodes[a]!.id < nodes[b]!.id ? -1 : 1));
  const rank = new Map(byId.map((position, place) => [position, place]));
  const back = new Set<A>();
  const state = new Map<number, 'on the way' | 'done'>();
  for (const start of [...byId.filter((position) => !targets.has(position)), ...positions]) {
    if (!state.has(start)) walk(start);
  }
  return back;

  /** Depth first, with a stack of its own: definitions may be deeper than the language's. */
  function walk(start: number): void {
    const way: { readonly node: number; readonly rest: A[] }[] = [];
    const enter = (node: number): void => {
      state.set(node, 'on the way');
      const rest = [...(outgoing.get(node) ?? [])].sort((a, b) => rank.get(b.target)! - rank.get(a.target)!);
      way.push({ node, rest });
    };
    enter(start);
    for (let here = way.at(-1); here; here = way.at(-1)) {
      const edge = here.rest.pop();
      if (!edge) {
        state.set(here.node, 'done');
        way.pop();
      } else if (state.get(edge.target) === 'on the way') back.add(edge);
      else if (!state.has(edge.target)) enter(edge.target);
    }
  }
}
