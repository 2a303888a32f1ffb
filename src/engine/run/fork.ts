import type { BranchPoint, Fork, NodeState, Run, RunFacts } from './run.ts';

/**
 * Sequence of the last event that comes from the source: for a branch the end of the copied events, for a replay the
 * end of the source's log.
 */
function lastGiven({ mode, fromSeq, throughSeq }: Fork): number {
  return mode === 'branch' ? fromSeq - 1 : Math.max(throughSeq, fromSeq - 1);
}

/**
 * Handles the points where a fork leaves its source's history. Either may lie between events that were committed
 * together.
 */
export function followFork(run: Run, fork: Fork): void {
  for (const { before, at } of fork.branchPoints ?? []) if (run.sequence === before - 1) leaveSource(run, at);
  if (run.sequence === fork.fromSeq - 1) dropCommands(run);
  if (run.sequence === lastGiven(fork)) detachFork(run);
}

/** Undoes pause and cancellation: they were commands to the source, not to the fork. */
function dropCommands(run: Run): void {
  delete run.pause;
  delete run.draining;
  if (run.failure) return;
  for (const [index, state] of run.nodes.entries()) {
    if (state.status !== 'cancelled') continue;
    state.status = 'ready';
    state.attempt++;
    state.endedAt = undefined;
    state.reason = undefined;
    run.ready.add(index);
  }
}

/** From here on the fork runs in its own time: attempts and interrupts in flight start again. */
export function detachFork(run: Run): void {
  if (run.isDetached) return;
  run.isDetached = true;
  leaveSource(run, run.facts.createdAt);
}

function leaveSource(run: Run, at: number): void {
  run.leftSourceAt = at;
  dropCommands(run);
  for (const index of run.active) restartNode(run, index, at);
}

/**
 * Where the branches in the history of a run left their sources. Nothing in the log tells of it, so a fork of a branch
 * keeps it.
 */
export function branchPointsOf({ fork, createdAt }: Pick<RunFacts, 'fork' | 'createdAt'>): readonly BranchPoint[] {
  const { branchPoints = [], mode, fromSeq = 0 } = fork ?? {};
  return mode === 'branch' && fromSeq > 0 ? [...branchPoints, { before: fromSeq, at: createdAt }] : branchPoints;
}

function restartNode(run: Run, index: number, now: number): void {
  const state = run.nodes[index]!;
  if (mustRunAgain(state)) {
    state.status = 'running';
    state.startedAt = now;
    state.resumedAt = undefined;
    state.childEndedAt = undefined;
    run.suspended.delete(index);
    state.interrupt = undefined;
    state.children = undefined;
    // From now on its effects belong to this run, and the log has no events about them yet.
    state.modelCalls = undefined;
    state.agentSteps = undefined;
    state.shown = undefined;
    state.openDeltas = undefined;
    return;
  }
  const { interrupt } = state;
  if (interrupt?.expiresAt === undefined) return;
  state.interrupt = { ...interrupt, requestedAt: now, expiresAt: now + interrupt.expiresAt - interrupt.requestedAt };
}

/**
 * Whether a node runs, waits for a child of the source, was about to raise an interrupt, or has an answer it did not
 * process yet.
 */
function mustRunAgain({ status, interrupt }: NodeState): boolean {
  if (status === 'running' || status === 'waiting') return true;
  return status === 'suspended' && (!interrupt || Object.keys(interrupt.data).length === 0);
}
