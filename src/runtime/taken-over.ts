import { type Lease, readWorkItem, type WorkItem } from '../store/queue.ts';
import type { Runtime } from './runtime.ts';
import { RUN_WORK } from './start-run.ts';

/**
 * Whether another host has taken a work item over from the holder of a lease that is not valid any more. A lease also
 * ends when its run is cancelled, or deleted with everything that belongs to it: that is nobody's failure.
 */
export async function isTakenOver(
  { store, reader }: Pick<Runtime, 'store' | 'reader'>,
  { kind, tenant }: Pick<WorkItem, 'kind' | 'tenant'>,
  { workId, epoch }: Lease,
): Promise<boolean> {
  const [item] = await store.read<Pick<WorkItem, 'epoch'>>(readWorkItem(workId));
  if (item) return item.epoch !== epoch;
  if (kind !== RUN_WORK) return false;
  // The other host has even ended the run by now.
  const row = await reader.row({ tenant }, workId);
  return row !== undefined && row.status !== 'cancelled';
}
