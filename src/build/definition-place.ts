import type { AuthoredWorkflow } from '../protocol/running/workflows.ts';

/**
 * Names a place of a definition by what its author wrote: the path `edges[0].condition` means nothing to somebody whose
 * edges follow from the order of steps.
 */
export function placeIn({ nodes, edges = [] }: AuthoredWorkflow, path: string): string {
  const [, list, index, member = ''] = /^(nodes|edges)\[(\d+)\](?:\.(.*))?$/.exec(path) ?? [];
  if (list === 'nodes') return named(`the node ${JSON.stringify(nodes[Number(index)]?.id)}`, member);
  if (list !== 'edges') return path;
  const { sourceNodeId, targetNodeId } = edges[Number(index)] ?? {};
  return named(`the edge from ${JSON.stringify(sourceNodeId)} to ${JSON.stringify(targetNodeId)}`, member);
}

function named(what: string, member: string): string {
  return member === '' ? what : `${member} of ${what}`;
}
