import { maskOutputs } from '../../engine/mask.ts';
import type { RunEvent } from '../../protocol/events.ts';
import type { Reaction } from '../../runtime/append.ts';
import { sha256Hex } from '../../system/digest.ts';
import { insertArtifact } from './records.ts';

/** Keeps what an `artifact.created` speaks of, in the transaction that records it. */
export const keepArtifacts: Reaction = ({ events, run, identity }) =>
  events.flatMap((event) => {
    if (event.type !== 'artifact.created') return [];
    const { artifactId, artifactType, nodeId } = event.payload;
    const completed = events.find((other) => isCompletionOf(other, nodeId));
    const data = maskOutputs(run.plan, nodeId ?? '', completed?.payload.outputs ?? {}, sha256Hex);
    const { runId } = run.facts;
    const body = JSON.stringify({ artifactId, artifactType, runId, nodeId, createdAt: event.timestamp, data });
    return [insertArtifact({ run_id: runId, artifact_id: artifactId, tenant: identity.subject.tenant, body })];
  });

function isCompletionOf(event: RunEvent, nodeId: string | undefined): event is RunEvent<'node.completed'> {
  return event.type === 'node.completed' && event.payload.nodeId === nodeId;
}
