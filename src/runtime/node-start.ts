import type { PlannedNode } from '../engine/definition/plan.ts';
import { failAttempt } from '../engine/run/outcome.ts';
import type { Run } from '../engine/run/run.ts';
import type { RunError } from '../protocol/errors.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import type { Runtime } from './runtime.ts';

/** Starts an attempt, or fails it if this host does not provide what the node type requires. */
export function nodeStartEvents(runtime: Runtime, run: Run, { node, index }: PlannedNode): NewEvent[] {
  const { id: nodeId, typeId } = node;
  const missing = missingFor(runtime, typeId);
  if (missing !== undefined) {
    const reasons = runtime.catalog.get(typeId)?.explainMissing?.(nodeId) ?? [];
    return [...reasons, failAttempt(run, nodeId, capabilityNotProvided(missing))];
  }
  return [{ type: 'node.started', nodeId, payload: { nodeId, typeId, attempt: run.nodes[index]!.attempt } }];
}

function missingFor({ catalog, provided }: Runtime, typeId: string): string | undefined {
  const type = catalog.get(typeId);
  return type ? type.requires?.find((id) => !provided.has(id)) : typeId;
}

/** The error of a node whose type, or a capability that its type requires, is not provided by this host. */
export function capabilityNotProvided(id: string): RunError {
  const message = `This host does not provide ${id}, which the node needs.`;
  return { code: 'capability_not_provided', message, details: { capability: id }, retryable: false };
}
