import { isTerminalStatus } from '../../../protocol/running/runs.ts';
import type { RunRow, StoredEvent } from '../../../store/log.ts';
import type { Clock } from '../../../system/clock.ts';
import type { Polling } from './polling.ts';

/** How a run is waited for. */
interface Waiting {
  readonly waitMs: number;
  readonly signal: AbortSignal;
  /** Called with the events as they come. */
  readonly onEvents?: (events: readonly StoredEvent[]) => Promise<void>;
}

/** Waits, up to a limit, until a run has ended or needs a person. */
export async function waitUntilSettled(
  { events, clock }: { readonly events: Polling; readonly clock: Clock },
  { tenant, run_id }: RunRow,
  { waitMs, signal, onEvents }: Waiting,
): Promise<void> {
  const giveUpAt = clock.now() + waitMs;
  for (let after = -1; ; ) {
    const waiting = { waitMs: Math.max(0, giveUpAt - clock.now()), signal };
    const polled = await events.poll({ tenant }, run_id, after, waiting);
    if (!polled) return;
    await onEvents?.(polled.events);
    after = polled.events.at(-1)?.sequence ?? after;
    if (isSettled(polled.status) && after >= polled.sequence) return;
    if (signal.aborted || clock.now() >= giveUpAt) return;
  }
}

/** Whether waiting longer is useless: the run has ended, or waits for a person. */
export function isSettled(status: string): boolean {
  return isTerminalStatus(status) || status === 'paused' || status === 'waiting-approval' || status === 'waiting-input';
}
