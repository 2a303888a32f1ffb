import type { Fork, NodeState, Run } from './run.ts';

/**
 * The inherited part of the log ends here. Nobody paused this run. A replay goes on in the time of its source; a branch
 * goes on in its own, so what was under way there begins anew.
 */
export function leaveHistory(run: Run, { mode }: Fork): void {
  delete run.pause;
  delete run.draining;
  if (mode === 'replay') return;
  for (const index of run.active) beginAnew(run.nodes[index]!, run.facts.createdAt);
}

function beginAnew(state: NodeState, now: number): void {
  if (state.status === 'waiting') {
    // Its child belongs to another run: it is sent for again.
    state.status = 'running';
    delete state.childRunId;
    delete state.childStatus;
  }
  if (state.status === 'running') state.startedAt = now;
  const { interrupt } = state;
  if (interrupt?.expiresAt !== undefined) {
    state.interrupt = { ...interrupt, requestedAt: now, expiresAt: now + interrupt.expiresAt - interrupt.requestedAt };
  }
}
