import { pauseRun } from '../engine/run/commands.ts';
import { perform } from './change.ts';
import { moveRun } from './move-run.ts';
import type { Runtime } from './runtime.ts';

/** The reason in the log of a run that is quarantined because it crashed or blocked its host. */
const QUARANTINE_REASON = 'runner_unavailable';

/**
 * Pauses a run whose work item is in quarantine, so that everybody sees why it does not move. The quarantine is committed
 * before: if reading the run is what harms the host, the run still cannot come back.
 */
export async function pauseQuarantined(runtime: Runtime, tenant: string, runId: string): Promise<void> {
  runtime.log.error(
    { runId, tenant },
    'the run crashed or blocked its host again and is quarantined; resume or cancel it',
  );
  const pause = () =>
    moveRun(runtime, { tenant }, runId, (run) =>
      pauseRun(run, { reason: QUARANTINE_REASON, drainPolicy: 'immediate', pausedBy: 'host' }),
    );
  try {
    await perform(runtime, pause, { mutexKey: runId });
  } catch (error) {
    runtime.log.error({ runId, err: error }, 'the quarantined run could not be marked as paused');
  }
}
