import { isRefusal, refuse } from '../protocol/errors.ts';
import { finishUnlessWoken, type Lease, readWorkItem, releaseLease, type WorkItem } from '../store/queue.ts';
import type { Store } from '../store/store.ts';
import { and, type Change, changeOf, perform, unchanged } from './change.ts';
import { LeaseLost } from './effects/ledger.ts';
import type { Runtime } from './runtime.ts';
import type { WorkKind } from './work-kind.ts';

/** What came of an item whose lease could not be ended as it was read: it was woken, or the lease is lost. */
const NOT_RELEASED = refuse('conflict', 'The work item was woken, or its lease is lost.');

/**
 * Handles a work item other than a run; returns when it is due again, if ever. The handler is called again after a
 * conflict, as every decision is, and for each wake-up that came meanwhile: those are not conflicts, and have no limit.
 */
export async function handleWork(
  runtime: Pick<Runtime, 'store' | 'mutex' | 'watchdog'>,
  kind: WorkKind,
  lease: Lease,
  claimed: WorkItem,
): Promise<number | null> {
  for (let item = claimed; ; item = await readAgain(runtime.store, lease, item)) {
    runtime.watchdog.note(`work ${item.kind}`);
    const due = await perform(runtime, () => handleOnce(kind, lease, item));
    if (due === NOT_RELEASED) continue;
    // The executor logs the reason and tries again with backoff.
    if (isRefusal(due)) throw new Error(`the change was refused: ${due.message}`);
    return due;
  }
}

/** The change of the handler together with the end of the lease. */
async function handleOnce(kind: WorkKind, lease: Lease, item: WorkItem): Promise<Change<number | null>> {
  const { change = unchanged(undefined), dueAgainAt } = await kind.handle(item);
  const end =
    dueAgainAt === undefined ? finishUnlessWoken(lease, item.wakes) : releaseLease(lease, dueAgainAt, item.wakes);
  return and(changeOf(dueAgainAt ?? null, [end], { refusals: { lease: NOT_RELEASED } }), change);
}

/** The item with the wake-ups and the checkpoint that it has now, if this host still holds it. */
async function readAgain(store: Store, lease: Lease, item: WorkItem): Promise<WorkItem> {
  const [now] = await store.read<Pick<WorkItem, 'wakes' | 'payload' | 'epoch'> & { owner: string | null }>(
    readWorkItem(lease.workId),
  );
  if (now?.owner !== lease.owner || now.epoch !== lease.epoch) {
    throw new LeaseLost('the work item was taken over or removed');
  }
  // The lease is held and nobody has woken the item, so a lease of another item in the change has failed.
  if (now.wakes === item.wakes) throw new LeaseLost('the change needs a lease that this host does not hold');
  return { ...item, wakes: now.wakes, payload: now.payload };
}
