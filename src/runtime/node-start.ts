import type { PlannedNode } from '../engine/definition/plan.ts';
import { failAttempt } from '../engine/run/outcome.ts';
import type { Run } from '../engine/run/run.ts';
import type { RunError } from '../protocol/errors.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import type { NodeType } from './node-type.ts';
import type { Runtime } from './runtime.ts';

/** Starts an attempt, or fails it if this host does not have the node type or what the type needs. */
export function nodeStartEvents(runtime: Runtime, run: Run, { node, index }: PlannedNode): NewEvent[] {
  const { id: nodeId, typeId } = node;
  const type = runtime.catalog.get(typeId);
  const lack: NodeType['lacks'] = type ? type.lacks : { capability: typeId };
  if (lack) {
    return [...(lack.reasons?.(nodeId) ?? []), failAttempt(run, nodeId, capabilityNotProvided(lack.capability))];
  }
  return [{ type: 'node.started', nodeId, payload: { nodeId, typeId, attempt: run.nodes[index]!.attempt } }];
}

/** The error of a node whose type, or a capability that its type needs, is not provided by this host. */
export function capabilityNotProvided(id: string): RunError {
  const message = `This host does not provide ${id}, which the node needs.`;
  return { code: 'capability_not_provided', message, details: { capability: id }, retryable: false };
}
