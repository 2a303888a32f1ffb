import type { WorkflowDefinition, WorkflowEdge } from '../../protocol/running/workflows.ts';

/** Node type of the agent that decides which workers to dispatch. */
export const SUPERVISOR = 'core.orchestrator.supervisor';
/** Node type that runs what its supervisor decided. */
export const DISPATCH = 'core.dispatch';

/**
 * The edges that the scheduler follows. An edge from a dispatch back to its supervisor only documents that the dispatch
 * consults it again; the scheduler must not treat it as a loop.
 */
export function scheduledEdges({ nodes, edges }: Pick<WorkflowDefinition, 'nodes' | 'edges'>): WorkflowEdge[] {
  const types = new Map(nodes.map(({ id, typeId }) => [id, typeId]));
  return edges.filter(
    ({ sourceNodeId, targetNodeId }) => types.get(sourceNodeId) !== DISPATCH || types.get(targetNodeId) !== SUPERVISOR,
  );
}
