import type { HostHealth } from '../../../protocol/operations/health.ts';
import type { EventType } from '../../../protocol/running/events.ts';

/** An event of a node, as far as it tells how long the node took. */
export interface NodeMoment {
  readonly runId: string;
  readonly workflowId: string;
  readonly nodeId: string;
  readonly type: string;
  readonly at: number;
}

const BEGINNINGS: readonly EventType[] = ['node.started', 'node.resumed'];
const ENDS: readonly EventType[] = ['node.completed', 'node.failed', 'node.retried'];
/** The events that begin and end the work of a node. A node that is suspended waits, and waiting is no work. */
export const NODE_MOMENTS: readonly EventType[] = [...BEGINNINGS, 'node.suspended', ...ENDS];

interface Timing {
  readonly ms: number;
  readonly runId: string;
}

/** The nodes whose attempts took longest, by their median, slowest first. `moments` are in order, run by run. */
export function slowestNodes(moments: readonly NodeMoment[], limit: number): HostHealth['slowNodes'] {
  const found = [...timings(moments)].map(([key, attempts]) => {
    const sorted = attempts.toSorted((a, b) => a.ms - b.ms);
    const [workflowId, nodeId] = JSON.parse(key) as [string, string];
    const slowest = sorted.at(-1)!;
    return {
      workflowId,
      nodeId,
      attempts: sorted.length,
      medianMs: sorted[Math.floor(sorted.length / 2)]!.ms,
      maxMs: slowest.ms,
      slowestRunId: slowest.runId,
    };
  });
  return found.sort((a, b) => b.medianMs - a.medianMs || b.maxMs - a.maxMs).slice(0, limit);
}

/** How long each attempt worked, by workflow and node. */
function timings(moments: readonly NodeMoment[]): ReadonlyMap<string, Timing[]> {
  const open = new Map<string, { worked: number; since: number | undefined }>();
  const found = new Map<string, Timing[]>();
  for (const { runId, workflowId, nodeId, type, at } of moments) {
    const place = JSON.stringify([runId, nodeId]);
    const { worked, since } = open.get(place) ?? { worked: 0, since: undefined };
    const total = worked + (since === undefined ? 0 : at - since);
    if (isOneOf(BEGINNINGS, type)) {
      open.set(place, { worked: type === 'node.started' ? 0 : total, since: at });
    } else if (isOneOf(ENDS, type)) {
      open.delete(place);
      if (since === undefined) continue;
      const key = JSON.stringify([workflowId, nodeId]);
      found.set(key, [...(found.get(key) ?? []), { ms: Math.max(0, total), runId }]);
    } else open.set(place, { worked: total, since: undefined });
  }
  return found;
}

function isOneOf(types: readonly string[], type: string): boolean {
  return types.includes(type);
}
