import type { RunEvent } from '../../protocol/running/events.ts';
import type { Run } from '../run/run.ts';

/** An attempt at a node that has ended, as metrics show it. */
interface EndedAttempt {
  readonly nodeId: string;
  readonly outcome: 'completed' | 'failed' | 'retried';
  readonly seconds: number;
}

/** How the events that end an attempt are called in the metrics. */
const OUTCOMES: Partial<Record<RunEvent['type'], EndedAttempt['outcome']>> = {
  'node.completed': 'completed',
  'node.failed': 'failed',
  'node.retried': 'retried',
};

/** The events from which the time of an attempt is measured: a person's time to answer is not the node's. */
const BEGINNINGS: readonly RunEvent['type'][] = ['node.started', 'node.resumed'];

/** The attempts that end with these events; `run` is in the state after the last of them. */
export function endedAttempts(run: Run, events: readonly RunEvent[]): EndedAttempt[] {
  const ended: EndedAttempt[] = [];
  /** When attempts began of which the beginning is among these events, too. */
  const began = new Map<string, string>();
  for (const { type, nodeId = '', timestamp } of events) {
    if (BEGINNINGS.includes(type)) began.set(nodeId, timestamp);
    const outcome = OUTCOMES[type];
    if (outcome === undefined) continue;
    const since = began.get(nodeId);
    // Most nodes end in the millisecond in which they began, and parsing times is what costs most here.
    const ms = since === timestamp ? 0 : Date.parse(timestamp) - beginningOf(run, nodeId, since);
    // A node that has been started again since does not show when this attempt began.
    if (ms >= 0) ended.push({ nodeId, outcome, seconds: ms / 1_000 });
  }
  return ended;
}

function beginningOf({ plan, nodes }: Run, nodeId: string, since: string | undefined): number {
  if (since !== undefined) return Date.parse(since);
  const state = nodes[plan.node(nodeId)?.index ?? -1];
  return state?.resumedAt ?? state?.startedAt ?? Number.NaN;
}
