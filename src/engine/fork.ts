import type { Fork, NodeState, Run } from './run.ts';

/**
 * The inherited part of the log ends here, perhaps between events that were written together. Nobody paused or
 * cancelled this run. A replay goes on in the time of its source; a branch goes on in its own, so what was under way
 * there begins anew.
 */
export function leaveHistory(run: Run, { mode }: Fork): void {
  delete run.pause;
  delete run.draining;
  if (!run.failure) reopenCancelled(run);
  if (mode === 'replay') return;
  for (const index of run.active) beginAnew(run, index);
}

function reopenCancelled(run: Run): void {
  for (const [index, state] of run.nodes.entries()) {
    if (state.status !== 'cancelled') continue;
    state.status = 'ready';
    state.attempt++;
    delete state.endedAt;
    delete state.reason;
    run.ready.add(index);
  }
}

function beginAnew(run: Run, index: number): void {
  const state = run.nodes[index]!;
  const now = run.facts.createdAt;
  if (mustRunAgain(state)) {
    state.status = 'running';
    state.startedAt = now;
    run.suspended.delete(index);
    delete state.interrupt;
    delete state.childRunId;
    delete state.childStatus;
    return;
  }
  const { interrupt } = state;
  if (interrupt?.expiresAt === undefined) return;
  state.interrupt = { ...interrupt, requestedAt: now, expiresAt: now + interrupt.expiresAt - interrupt.requestedAt };
}

/** It runs, or waits for a child of another run, or was about to ask, or has been told and did not go on yet. */
function mustRunAgain({ status, interrupt }: NodeState): boolean {
  if (status === 'running' || status === 'waiting') return true;
  return status === 'suspended' && (!interrupt || Object.keys(interrupt.data).length === 0);
}
