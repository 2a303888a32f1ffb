import type { WorkHandler } from '../../runtime/executor.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { countEntries, type EntryRow, endFeed, type FeedRow, firstEntries, listFeeds, raiseFloor } from './records.ts';
import { KEPT_MS } from './service.ts';

const EVERY_MS = 60_000;
/** A feed keeps no more than this, however quickly things happen. */
const ENTRIES_MAX = 100_000;
const ENTRIES_AT_ONCE = 5_000;

/** Forgets old entries, a bounded part at a time, and ends feeds that nobody has come back to. */
export function sweepHandler({ store, clock }: Runtime): WorkHandler {
  return async () => {
    let isDone = true;
    for (const { tenant, is_over } of await store.read<FeedRow & { is_over: number }>(listFeeds())) {
      if (is_over === 1) await store.commit(endFeed(tenant));
      else if (!(await trim(tenant))) isDone = false;
    }
    return { writes: [], dueAgainAt: isDone ? clock.now() + EVERY_MS : clock.now() };
  };

  /** False when there is more to forget. */
  async function trim(tenant: string): Promise<boolean> {
    const [{ count } = { count: 0 }] = await store.read<{ count: number }>(countEntries(tenant));
    const first = await store.read<EntryRow>(firstEntries(tenant, ENTRIES_AT_ONCE));
    const oldest = clock.now() - KEPT_MS;
    const tooMany = count - ENTRIES_MAX;
    const last = first.findLastIndex(({ at }, index) => at < oldest || index < tooMany);
    if (last < 0) return true;
    await store.commit(raiseFloor(tenant, first[last]!));
    return last + 1 < ENTRIES_AT_ONCE;
  }
}
