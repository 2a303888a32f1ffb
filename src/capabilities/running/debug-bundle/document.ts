import { snapshotOf } from '../../../engine/run/snapshot.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { NodeStateDoc } from '../../../protocol/running/runs.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { REDACTED } from '../../../system/redaction.ts';
import type { Survey } from './survey.ts';

/** The run without inputs, variables and outputs: a bundle may be given to people who must not see them. */
export function runOf({ run }: Survey): JsonObject {
  const snapshot = snapshotOf(run, sha256Hex);
  const { runId, workflowId, status, owner, currentNodeId, startedAt, endedAt = null, error = null } = snapshot;
  const declared = run.plan.definition.variables.filter(({ name }) => Object.hasOwn(run.variables, name));
  return {
    runId,
    workflowId,
    status,
    owner,
    currentNodeId,
    startedAt,
    endedAt,
    error,
    inputs: {},
    variables: Object.fromEntries(declared.map(({ name }) => [name, REDACTED])),
    nodeStates: withoutOutputs(snapshot.nodeStates ?? {}),
    engineVersion: snapshot.engineVersion,
    eventLogSchemaVersion: snapshot.eventLogSchemaVersion,
  };
}

function withoutOutputs(nodeStates: Record<string, NodeStateDoc>): JsonObject {
  return Object.fromEntries(Object.entries(nodeStates).map(([nodeId, { outputs: _, ...state }]) => [nodeId, state]));
}

/** As many values as fit into a size, as the inside of a JSON array. */
export function fitting(
  values: readonly object[],
  bytesMax: number,
): { readonly texts: string; readonly isTruncated: boolean } {
  const texts: string[] = [];
  let bytes = 0;
  for (const value of values) {
    const text = JSON.stringify(value);
    bytes += Buffer.byteLength(text) + 1;
    if (bytes > bytesMax) break;
    texts.push(text);
  }
  return { texts: texts.join(','), isTruncated: texts.length < values.length };
}
