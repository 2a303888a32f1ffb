import type { Fork, NodeState, Run } from './run.ts';

/** The last event that a fork was given: those of a branch are its beginning, a replay has its whole source to go by. */
function lastGiven({ mode, fromSeq, throughSeq }: Fork): number {
  return mode === 'branch' ? fromSeq - 1 : Math.max(throughSeq, fromSeq - 1);
}

/** Follows a fork out of the history that it shares. Both may end between events that were written together. */
export function followFork(run: Run, fork: Fork): void {
  if (run.sequence === fork.fromSeq - 1) leaveCommands(run);
  if (run.sequence === lastGiven(fork)) goOnAlone(run);
}

/** Nobody paused or cancelled this run. */
function leaveCommands(run: Run): void {
  delete run.pause;
  delete run.draining;
  if (run.failure) return;
  for (const [index, state] of run.nodes.entries()) {
    if (state.status !== 'cancelled') continue;
    state.status = 'ready';
    state.attempt++;
    delete state.endedAt;
    delete state.reason;
    run.ready.add(index);
  }
}

/** From here on the fork lives in its own time: whatever is under way begins anew. */
export function goOnAlone(run: Run): void {
  if (run.isAlone) return;
  run.isAlone = true;
  leaveCommands(run);
  for (const index of run.active) beginAnew(run, index);
}

function beginAnew(run: Run, index: number): void {
  const state = run.nodes[index]!;
  const now = run.facts.createdAt;
  if (mustRunAgain(state)) {
    state.status = 'running';
    state.startedAt = now;
    run.suspended.delete(index);
    delete state.interrupt;
    delete state.children;
    // Its effects are this run's own, and nothing has been told of them.
    delete state.modelCalls;
    delete state.agentSteps;
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
