/** A workflow for scenarios that need one of their own. Positions and names play no part. */
export function workflow(id: string, nodes: readonly object[], edges: readonly object[], more: object = {}): object {
  return {
    id,
    name: id,
    version: '1.0',
    nodes,
    edges,
    triggers: [{ id: 'manual', type: 'manual' }],
    variables: [],
    metadata: {},
    settings: {},
    ...more,
  };
}

/** A node of a workflow. */
export function node(id: string, typeId = 'core.noop', more: object = {}): object {
  return { id, typeId, name: id, position: { x: 0, y: 0 }, config: {}, inputs: {}, ...more };
}

/** An edge between two nodes. */
export function edge(from: string, to: string, more: object = {}): object {
  return { id: `${from}-${to}`, sourceNodeId: from, targetNodeId: to, ...more };
}

/** Edges that put nodes one after the other. */
export function line(...ids: readonly string[]): object[] {
  return ids.slice(1).map((id, index) => edge(ids[index]!, id));
}

/** An input that is worked out from the state of the run. */
export function expression(text: string): object {
  return { type: 'expression', expression: text };
}

/** An input that is always the same. */
export function fixed(value: unknown): object {
  return { type: 'static', value };
}
