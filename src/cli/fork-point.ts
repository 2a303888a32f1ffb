import type { RunEvent } from '../client/index.ts';
import { nearest } from '../protocol/format/nearest.ts';
import type { NodeTypeSummary, WorkflowDefinition } from '../protocol/running/workflows.ts';
import { UsageError } from './exit.ts';

/** The events that end a visit of a node. Retries and restarts after a pause belong to the same visit. */
const VISIT_ENDS: ReadonlySet<string> = new Set(['node.completed', 'node.failed', 'node.skipped', 'node.cancelled']);

/**
 * The sequence of the first start in the last visit of a node: a fork from there starts the node again. Attempt numbers
 * do not show where a visit begins, because they keep increasing from one iteration of a loop to the next.
 */
export function startOf(events: readonly RunEvent[], nodeId: string): number {
  let start: number | undefined;
  let isOpen = false;
  for (const { type, sequence } of events.filter((event) => event.nodeId === nodeId)) {
    if (type === 'node.started' && !isOpen) start = sequence;
    if (type === 'node.started') isOpen = true;
    else if (VISIT_ENDS.has(type)) isOpen = false;
  }
  if (start !== undefined) return start;
  const started = [...new Set(events.flatMap((event) => (event.type === 'node.started' ? [event.nodeId!] : [])))];
  const meant = nearest(nodeId, started);
  throw new UsageError(
    `The node ${nodeId} was not started in this run. ${
      meant === undefined ? `These were: ${started.join(', ') || 'none'}.` : `Did you mean ${meant}?`
    }`,
  );
}

/** The node that a run failed at: the first failure, which ended it. */
export function failedNode(events: readonly RunEvent[]): string | undefined {
  return events
    .flatMap((event) => (event.type === 'run.failed' ? [event.payload.failedNodeId] : []))
    .find((nodeId) => nodeId !== undefined);
}

/** The nodes with effects on the world that were started at a sequence or later, so that a branch repeats them. */
export function repeatedEffects(
  events: readonly RunEvent[],
  fromSeq: number,
  { nodes }: Pick<WorkflowDefinition, 'nodes'>,
  types: readonly Pick<NodeTypeSummary, 'typeId' | 'role'>[],
): string[] {
  const again = new Set(
    events.flatMap(({ type, sequence, nodeId }) => (type === 'node.started' && sequence >= fromSeq ? [nodeId] : [])),
  );
  // The types of workers are not in the list, and what they do is not known.
  const isPure = (typeId: string): boolean => types.some((type) => type.typeId === typeId && type.role === 'pure');
  return nodes.filter(({ id, typeId }) => again.has(id) && !isPure(typeId)).map(({ id }) => id);
}
