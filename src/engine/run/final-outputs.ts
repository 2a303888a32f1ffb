import type { JsonObject } from '../../protocol/format/json.ts';
import type { RunSnapshot } from '../../protocol/running/runs.ts';
import type { WorkflowDefinition } from '../../protocol/running/workflows.ts';
import { type Digest, maskRunOutputs } from '../masking/mask.ts';
import { finalOutputs } from './next.ts';
import type { Run } from './run.ts';

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

/** What a run results in, as readers see it. */
export function shownOutputs(run: Run, digest: Digest): JsonObject {
  const masked = maskRunOutputs(run.plan, finalOutputs(run), digest);
  return run.known ? run.known.mask(masked) : masked;
}
