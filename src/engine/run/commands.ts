import { refuse } from '../../protocol/errors.ts';
import type { DrainPolicy } from '../../protocol/running/events.ts';
import type { Decision } from './decision.ts';
import { cancelActive, isBusy } from './next.ts';
import { isTerminal, type Run, statusOf } from './run.ts';

/** Who cancels a run, and why. */
interface CancelOptions {
  readonly reason?: string | undefined;
  readonly cancelledBy?: string | undefined;
  /** Set if the parent run was cancelled and takes its children with it. */
  readonly parentRunId?: string | undefined;
}

/** Cancels a run at once: the run ends in one transaction, so a host that still executes it can no longer write. */
export function cancelRun(run: Run, { reason, cancelledBy, parentRunId }: CancelOptions): Decision {
  if (isTerminal(run)) return refuse('run_terminal', 'The run has ended.', { runStatus: statusOf(run) });
  const payload = {
    ...(reason ? { reason } : {}),
    ...(cancelledBy ? { cancelledBy } : {}),
    ...(parentRunId ? { parentRunId } : {}),
  };
  return [...cancelActive(run, 'run-cancelled'), { type: 'run.cancelled', payload }];
}

/** Who pauses a run, why, and what happens to the nodes in flight. */
interface PauseOptions {
  readonly reason?: string | undefined;
  readonly drainPolicy: DrainPolicy;
  readonly pausedBy?: string | undefined;
}

/** Pauses a run now, or requests a pause for when the nodes in flight have finished (`drain-current-node`). */
export function pauseRun(run: Run, { reason, drainPolicy, pausedBy }: PauseOptions): Decision {
  if (isTerminal(run)) return refuse('run_terminal', 'The run has ended.', { runStatus: statusOf(run) });
  const pausedAt = run.pause?.at ?? run.draining?.at;
  if (pausedAt !== undefined) {
    const details = { runStatus: 'paused', pausedAt: new Date(pausedAt).toISOString() };
    return refuse('run_state_conflict', 'The run is already paused.', details);
  }
  const status = statusOf(run);
  if (status !== 'running' && status !== 'pending') {
    return refuse('run_state_conflict', `A run that is ${status} cannot be paused.`, { runStatus: status });
  }
  const payload = { drainPolicy, ...(reason ? { reason } : {}), ...(pausedBy ? { pausedBy } : {}) };
  const mustDrain = drainPolicy === 'drain-current-node' && isBusy(run);
  return [{ type: mustDrain ? 'capstan.pause.requested' : 'run.paused', payload }];
}

/** Who resumes a run, and why. */
interface ResumeOptions {
  readonly reason?: string | undefined;
  readonly resumedBy?: string | undefined;
}

/** Resumes a paused run, or withdraws a pause that still waits for nodes in flight. */
export function resumeRun(run: Run, { reason, resumedBy }: ResumeOptions = {}): Decision {
  const status = statusOf(run);
  if (isTerminal(run)) return refuse('run_terminal', 'The run has ended.', { runStatus: status });
  if (!run.pause && !run.draining) {
    return refuse('run_state_conflict', 'The run is not paused.', { runStatus: status });
  }
  const payload = { ...(reason ? { reason } : {}), ...(resumedBy ? { resumedBy } : {}) };
  return [{ type: 'run.resumed', payload }];
}
