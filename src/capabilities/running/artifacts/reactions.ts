import { maskOutputs } from '../../../engine/masking/mask.ts';
import { artifactIdOf } from '../../../engine/run/outcome.ts';
import type { Reaction } from '../../../runtime/reaction.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { upsertArtifact } from './records.ts';

/** Stores the artifact of a node in the unit that records the end of the node. */
export const storeArtifacts: Reaction = ({ events, run, identity }) =>
  events.flatMap((event) => {
    if (event.type !== 'node.completed' || !event.payload.outputs) return [];
    const { nodeId, outputs } = event.payload;
    const planned = run.plan.node(nodeId)!;
    const { artifactType } = planned.node;
    if (!artifactType) return [];
    const artifactId = artifactIdOf(planned);
    const masked = maskOutputs(run.plan, nodeId, outputs, sha256Hex);
    const data = run.known ? run.known.mask(masked) : masked;
    const { runId } = run.facts;
    const body = JSON.stringify({ artifactId, artifactType, runId, nodeId, createdAt: event.timestamp, data });
    return [upsertArtifact({ run_id: runId, artifact_id: artifactId, tenant: identity.subject.tenant, body })];
  });
