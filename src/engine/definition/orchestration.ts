import type { WorkflowDefinition, WorkflowEdge } from '../../protocol/running/workflows.ts';

export const SUPERVISOR = 'core.orchestrator.supervisor';
export const DISPATCH = 'core.dispatch';

/**
 * The edges that the scheduler follows. A dispatch asks its supervisor again in its own place: an edge back from the one
 * to the other says that it does, and has nobody begin again.
 */
export function scheduledEdges({ nodes, edges }: Pick<WorkflowDefinition, 'nodes' | 'edges'>): WorkflowEdge[] {
  const types = new Map(nodes.map(({ id, typeId }) => [id, typeId]));
  return edges.filter(
    ({ sourceNodeId, targetNodeId }) => types.get(sourceNodeId) !== DISPATCH || types.get(targetNodeId) !== SUPERVISOR,
  );
}
