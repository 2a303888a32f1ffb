import type { JsonObject } from '../../protocol/format/json.ts';
import type { RunSnapshot } from '../../protocol/running/runs.ts';
import type { WorkflowDefinition } from '../../protocol/running/workflows.ts';

/** What a run results in: the outputs of its nodes without outgoing edges, by node id. */
export function finalOutputsInSnapshot(
  { nodeStates = {} }: RunSnapshot,
  { nodes, edges }: WorkflowDefinition,
): JsonObject {
  const last = nodes.filter(({ id }) => !edges.some(({ sourceNodeId }) => sourceNodeId === id));
  return Object.fromEntries(
    last.flatMap(({ id }) => {
      const outputs = nodeStates[id]?.outputs;
      return outputs ? [[id, outputs]] : [];
    }),
  );
}
