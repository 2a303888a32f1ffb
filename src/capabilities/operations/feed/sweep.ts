import type { WorkHandler } from '../../../runtime/executor.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { Numbering } from './numbering.ts';
import { type EntryRow, endFeed, entriesAfter, type FeedRow, findFeed, listFeeds, raiseFloor } from './records.ts';
import { KEPT_MS } from './service.ts';

const EVERY_MS = 60_000;
/** A feed keeps no more than this, however quickly things happen. */
const ENTRIES_MAX = 100_000;
const ENTRIES_AT_ONCE = 5_000;

/** Forgets old entries, a bounded part at a time, and ends feeds that nobody has come back to. */
export function sweepHandler({ store, clock }: Pick<Runtime, 'store' | 'clock'>): WorkHandler {
  const numbering = new Numbering(store);
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
    await numbering.bringUpToDate(tenant);
    const [feed] = await store.read<FeedRow>(findFeed(tenant));
    if (!feed) return true;
    const first = await store.read<EntryRow>(entriesAfter(tenant, feed.floor, ENTRIES_AT_ONCE));
    const oldest = clock.now() - KEPT_MS;
    const tooOld = (entry: EntryRow): boolean => entry.at < oldest || entry.number <= feed.last_number - ENTRIES_MAX;
    const last = first.findLast(tooOld);
    if (!last) return true;
    await store.commit(raiseFloor(tenant, last.number));
    return first.at(-1) !== last || first.length < ENTRIES_AT_ONCE;
  }
}
