import { finishUnlessWoken, type Lease, readWorkItem, releaseLease, type WorkItem } from '../store/queue.ts';
import { LeaseLost } from './effects/ledger.ts';
import type { Runtime } from './runtime.ts';
import type { WorkKind } from './work-kind.ts';

/** Handles a work item other than a run, and again when it was woken meanwhile; returns when it is due again, if ever. */
export async function handleWork(
  { store, watchdog }: Pick<Runtime, 'store' | 'watchdog'>,
  kind: WorkKind,
  lease: Lease,
  claimed: WorkItem,
): Promise<number | null> {
  for (let item = claimed; ; ) {
    watchdog.note(`work ${item.kind}`);
    const { change, dueAgainAt } = await kind.handle(item);
    const end =
      dueAgainAt === undefined ? finishUnlessWoken(lease, item.wakes) : releaseLease(lease, dueAgainAt, item.wakes);
    const outcome = await store.commit([end, ...(change?.writes ?? [])]);
    if (outcome.committed) {
      for (const tell of change?.announce ?? []) tell();
      return dueAgainAt ?? null;
    }
    const [now] = await store.read<Pick<WorkItem, 'wakes' | 'payload' | 'epoch'> & { owner: string | null }>(
      readWorkItem(lease.workId),
    );
    if (now?.owner !== lease.owner || now.epoch !== lease.epoch || now.wakes === item.wakes) {
      throw new LeaseLost(`the work item was taken over, or an expectation failed: ${outcome.failedExpectation}`);
    }
    item = { ...item, wakes: now.wakes, payload: now.payload };
  }
}
