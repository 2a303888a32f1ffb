import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import type { NodeView, RunView } from './view.ts';

/** Why the engine skips or cancels a node, in words. */
const REASONS: Readonly<Record<string, string>> = {
  edge_condition_false: 'The condition of the edge that leads here was false.',
  upstream_skipped: 'The nodes before it were skipped.',
  upstream_failed: 'A node before it failed.',
  nothing_failed: 'It starts only if a node before it fails, and none did.',
  disabled: 'The node is disabled in the workflow.',
  'run-failed': 'Another node failed the run.',
};
const NOT_EVALUATED = 'The condition of the edge that leads here could not be evaluated, so it counted as false.';

/** Why a node was skipped or cancelled, in words; what the page does not know is shown as it is. */
export function whyEnded(
  { nodeId, reason = '' }: Pick<NodeView, 'nodeId' | 'reason'>,
  { lines }: Pick<RunView, 'lines'>,
  definition: WorkflowDefinition | undefined,
): string {
  const incoming = definition?.edges.filter(({ targetNodeId }) => targetNodeId === nodeId) ?? [];
  if (reason === 'edge_condition_false' && lines.some(({ edgeId }) => incoming.some(({ id }) => id === edgeId))) {
    return NOT_EVALUATED;
  }
  return Object.hasOwn(REASONS, reason) ? REASONS[reason]! : reason;
}
