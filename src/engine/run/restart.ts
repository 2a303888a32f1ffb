import type { Plan, PlannedEdge, PlannedNode } from '../definition/plan.ts';
import { pendingNode, type Run, type Tally } from './run.ts';

/** The nodes that can be reached from a node without loopback edges, itself included. */
export function reachableFrom(plan: Plan, first: PlannedNode): PlannedNode[] {
  const found = new Set([first]);
  for (const { outgoing } of found) {
    for (const { target, isLoopback } of outgoing) if (!isLoopback) found.add(plan.nodes[target]!);
  }
  return [...found];
}

/** The node, and every node from which a path of edges leads to it. */
export function leadingTo(plan: Plan, last: PlannedNode): ReadonlySet<PlannedNode> {
  const found = new Set([last]);
  for (const { incoming } of found) for (const { source } of incoming) found.add(plan.nodes[source]!);
  return found;
}

/** Resets a node. Attempt numbers continue, so that no two attempts of a node share one. */
export function reopen(run: Run, { index, outgoing }: PlannedNode): void {
  const { attempt, visit, interrupts, startedAt } = run.nodes[index]!;
  const nextAttempt = startedAt === undefined ? attempt : attempt + 1;
  run.nodes[index] = pendingNode({ attempt: nextAttempt, visit: visit + 1, interrupts });
  run.toSkip.delete(index);
  run.ready.delete(index);
  // Loopback edges keep their result, because they deliver the inputs of the new iteration.
  for (const { edge, isLoopback } of outgoing) if (!isLoopback) run.edgeResults.delete(edge.id);
}

/** Resets a node that has ended with what was before a loop began anew; it starts when what it needs is there again. */
export function makeAgain(run: Run, planned: PlannedNode): void {
  reopen(run, planned);
  run.tallies[planned.index] = tallyOf(run, planned.incoming);
  decide(run, planned);
}

/**
 * Asks for approval again: the gates, and all nodes after them, are as if they had not run yet. Their outputs are gone
 * too, because an earlier approval must not be read from there. This is no iteration of a loop.
 */
export function reopenGates(run: Run, gateIds: readonly string[]): void {
  const gates = gateIds.flatMap((id) => run.plan.node(id) ?? []);
  const following = [...new Set(gates.flatMap((gate) => reachableFrom(run.plan, gate)))];
  for (const planned of following) {
    const { index, node } = planned;
    const { visit } = run.nodes[index]!;
    reopen(run, planned);
    run.nodes[index]!.visit = visit;
    run.active.delete(index);
    run.suspended.delete(index);
    delete run.outputs[node.id];
    run.grants.delete(index);
    if (run.exhausted === index) delete run.exhausted;
  }
  for (const { index, incoming } of following) run.tallies[index] = tallyOf(run, incoming);
  for (const planned of following) decide(run, planned);
}

/** Counts the results of edges; one without a result is open. */
export function tallyOf(run: Run, incoming: readonly PlannedEdge[]): Tally {
  const tally: Tally = { open: 0, succeeded: 0, failed: 0, skipped: 0 };
  for (const { edge } of incoming) tally[run.edgeResults.get(edge.id) ?? 'open']++;
  return tally;
}

type TriggerResult = 'start' | 'wait' | 'upstream_failed' | 'upstream_skipped';

/** Trigger rules: whether a node starts, waits, or is skipped and why. */
export const triggers: Record<PlannedNode['rule'], (tally: Tally) => TriggerResult> = {
  all_success: ({ open, failed, succeeded }) => {
    if (open > 0) return 'wait';
    if (failed > 0) return 'upstream_failed';
    return succeeded > 0 ? 'start' : 'upstream_skipped';
  },
  any_success: ({ open, failed, succeeded }) => {
    if (succeeded > 0) return 'start';
    if (open > 0) return 'wait';
    return failed > 0 ? 'upstream_failed' : 'upstream_skipped';
  },
  all_complete: ({ open }) => (open > 0 ? 'wait' : 'start'),
  none_failed: ({ open, failed }) => {
    if (failed > 0) return 'upstream_failed';
    return open > 0 ? 'wait' : 'start';
  },
  any_failed: ({ open, failed }) => {
    if (failed > 0) return 'start';
    return open > 0 ? 'wait' : 'upstream_skipped';
  },
};

/** Lets a node start, or notes that it is to be skipped, once its trigger rule says so. */
export function decide(run: Run, planned: PlannedNode): void {
  const state = run.nodes[planned.index]!;
  if (state.status !== 'pending' || run.toSkip.has(planned.index)) return;
  const result = planned.incoming.length === 0 ? 'start' : triggers[planned.rule](run.tallies[planned.index]!);
  if (result === 'wait') return;
  if (result !== 'start') {
    run.toSkip.set(planned.index, skipReason(run, planned, result));
  } else if (planned.node.disabled) {
    run.toSkip.set(planned.index, 'disabled');
  } else {
    state.status = 'ready';
    run.ready.add(planned.index);
  }
}

function skipReason(run: Run, planned: PlannedNode, result: TriggerResult): string {
  if (result !== 'upstream_skipped') return result;
  const completed = planned.incoming.filter(({ source }) => run.nodes[source]!.status === 'completed');
  if (completed.some(({ condition }) => condition)) return 'edge_condition_false';
  return completed.length > 0 ? 'nothing_failed' : result;
}
