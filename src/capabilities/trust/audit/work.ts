import type { WorkHandler } from '../../../runtime/executor.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { oldestTail } from './records.ts';
import { CHECKPOINT_SECONDS, type Sealer } from './sealer.ts';

/** Kind and id of the one work item that seals: of many hosts on a store, one seals at a time. */
export const SEAL = 'audit-seal';

/** A minute before the advertised time is over, because work can be late. */
const CHECKPOINT_AFTER_MS = (CHECKPOINT_SECONDS - 60) * 1_000;

/** Seals every pending record and signs checkpoints that are due; it is due again when the next checkpoint is. */
export function sealHandler({ store, clock }: Pick<Runtime, 'store' | 'clock'>, sealer: Sealer): WorkHandler {
  return async () => {
    await sealer.seal();
    await sealer.checkpointTails(clock.now() - CHECKPOINT_AFTER_MS);
    const [tail] = await store.read<{ since: number | null }>(oldestTail());
    return { dueAgainAt: (tail?.since ?? clock.now()) + CHECKPOINT_AFTER_MS };
  };
}
