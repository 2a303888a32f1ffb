import { type Lease, readWorkItem, type WorkItem } from '../store/queue.ts';
import type { Runtime } from './runtime.ts';
import { RUN_WORK } from './start-run.ts';

type Item = Pick<WorkItem, 'kind' | 'tenant'>;
type Parts = Pick<Runtime, 'store' | 'reader' | 'meter'>;

/** Counts a lease that was lost to another host. Nobody waits for this: without an answer, a number is too small. */
export async function countLoss(runtime: Parts, item: Item, lease: Lease): Promise<void> {
  const isLost = await isTakenOver(runtime, item, lease).catch(() => false);
  if (isLost) runtime.meter.leaseLost();
}

/**
 * Whether another host has taken a work item over from the holder of a lease that is not valid any more. A lease also
 * ends when its run is cancelled, or deleted with everything that belongs to it: that is nobody's failure.
 */
async function isTakenOver(
  { store, reader }: Parts,
  { kind, tenant }: Item,
  { workId, epoch }: Lease,
): Promise<boolean> {
  const [item] = await store.read<Pick<WorkItem, 'epoch'>>(readWorkItem(workId));
  if (item) return item.epoch !== epoch;
  if (kind !== RUN_WORK) return false;
  // The other host has even ended the run by now.
  const row = await reader.row({ tenant }, workId);
  return row !== undefined && row.status !== 'cancelled';
}
