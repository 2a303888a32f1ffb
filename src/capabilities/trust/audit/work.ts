import type { Runtime } from '../../../runtime/runtime.ts';
import type { WorkHandler } from '../../../runtime/work-kind.ts';
import type { Anchorer } from './anchorer.ts';
import { oldestTail } from './records.ts';
import { CHECKPOINT_SECONDS, type Sealer } from './sealer.ts';

/** Kind and id of the one work item that seals: of many hosts on a store, one seals at a time. */
export const SEAL = 'audit-seal';

/** A minute before the advertised time is over, because work can be late. */
const CHECKPOINT_AFTER_MS = (CHECKPOINT_SECONDS - 60) * 1_000;

/** An anchor that was away is tried again after this time. */
const ANCHOR_AGAIN_MS = 10_000;

/**
 * Seals every pending record, signs checkpoints that are due and copies them to the anchors; it is due again when the
 * next checkpoint is.
 */
export function sealHandler(
  { store, clock }: Pick<Runtime, 'store' | 'clock'>,
  sealer: Sealer,
  anchorer: Anchorer,
): WorkHandler {
  return async () => {
    await sealer.seal();
    await sealer.checkpointTails(clock.now() - CHECKPOINT_AFTER_MS);
    if (!(await anchorer.copyAll())) return { dueAgainAt: clock.now() + ANCHOR_AGAIN_MS };
    const [tail] = await store.read<{ since: number | null }>(oldestTail());
    return { dueAgainAt: (tail?.since ?? clock.now()) + CHECKPOINT_AFTER_MS };
  };
}
