import { type Refusal, refuse } from '../../protocol/errors.ts';
import type { DrainPolicy, NewEvent } from '../../protocol/running/events.ts';
import { cancelActive, isBusy } from './next.ts';
import { isTerminal, type Run, statusOf } from './run.ts';

/** What people and programs may ask of a run. Each answers with the events to record, or says why not, or both. */
export type Decision = readonly NewEvent[] | Refusal | RecordedRefusal;

/** A no that leaves a trace. */
export interface RecordedRefusal {
  readonly record: readonly NewEvent[];
  readonly refusal: Refusal;
}

export interface Cancellation {
  readonly reason?: string | undefined;
  readonly cancelledBy?: string | undefined;
  /** Set when the cancellation comes down from the run that started this one. */
  readonly parentRunId?: string | undefined;
}

/** One transaction ends the run: whoever executes it can write nothing after that. */
export function cancelRun(run: Run, { reason, cancelledBy, parentRunId }: Cancellation): Decision {
  if (isTerminal(run)) return refuse('run_terminal', 'The run has ended.', { runStatus: statusOf(run) });
  const payload = {
    ...(reason ? { reason } : {}),
    ...(cancelledBy ? { cancelledBy } : {}),
    ...(parentRunId ? { parentRunId } : {}),
  };
  return [...cancelActive(run, 'run-cancelled'), { type: 'run.cancelled', payload }];
}

export interface Pausing {
  readonly reason?: string | undefined;
  readonly drainPolicy: DrainPolicy;
  readonly pausedBy?: string | undefined;
}

export function pauseRun(run: Run, { reason, drainPolicy, pausedBy }: Pausing): Decision {
  if (isTerminal(run)) return refuse('run_terminal', 'The run has ended.', { runStatus: statusOf(run) });
  const pausedAt = run.pause?.at ?? run.draining?.at;
  if (pausedAt !== undefined) {
    const details = { runStatus: 'paused', pausedAt: new Date(pausedAt).toISOString() };
    return refuse('run_state_conflict', 'The run is paused already.', details);
  }
  const status = statusOf(run);
  if (status !== 'running' && status !== 'pending') {
    return refuse('run_state_conflict', `A run that is ${status} cannot be paused.`, { runStatus: status });
  }
  const payload = { drainPolicy, ...(reason ? { reason } : {}), ...(pausedBy ? { pausedBy } : {}) };
  const mustDrain = drainPolicy === 'drain-current-node' && isBusy(run);
  return [{ type: mustDrain ? 'capstan.pause.requested' : 'run.paused', payload }];
}

export interface Resuming {
  readonly reason?: string | undefined;
  readonly resumedBy?: string | undefined;
}

export function resumeRun(run: Run, { reason, resumedBy }: Resuming = {}): Decision {
  const status = statusOf(run);
  if (isTerminal(run)) return refuse('run_terminal', 'The run has ended.', { runStatus: status });
  if (!run.pause && !run.draining) {
    return refuse('run_state_conflict', 'The run is not paused.', { runStatus: status });
  }
  const payload = { ...(reason ? { reason } : {}), ...(resumedBy ? { resumedBy } : {}) };
  return [{ type: 'run.resumed', payload }];
}
