import { commitOrThrow } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { WorkHandler } from '../../../runtime/work-kind.ts';
import { ensureWork } from '../../../store/queue.ts';
import type { Write } from '../../../store/sql.ts';
import { Numbering } from './numbering.ts';
import { type EntryRow, endFeed, entriesAfter, type FeedRow, findFeed, listFeeds, raiseFloor } from './records.ts';
import { RETENTION_MS } from './rules.ts';

/** Kind and id of the one work item that sweeps feeds. */
export const SWEEP = 'sweep-feeds';
const EVERY_MS = 60_000;
/** Older entries are deleted beyond this number, however quickly new ones come. */
const ENTRIES_MAX = 100_000;
const ENTRIES_PER_SWEEP = 5_000;

/** The work item of the sweep. */
export function sweepWork(): Write {
  return ensureWork({ workId: SWEEP, kind: SWEEP, tenant: '*', dueAt: 0 });
}

/** Deletes old entries, a limited number at a time, and ends feeds that nobody reads any more. */
export function sweepHandler({ store, clock }: Pick<Runtime, 'store' | 'clock'>): WorkHandler {
  const numbering = new Numbering(store);
  return async () => {
    let isDone = true;
    for (const { tenant, is_over } of await store.read<FeedRow & { is_over: number }>(listFeeds())) {
      // Its expectation fails if a reader has just come back, and then the feed goes on.
      if (is_over === 1) await store.commit(endFeed(tenant));
      else if ((await trim(tenant)).hasMore) isDone = false;
    }
    return { dueAgainAt: isDone ? clock.now() + EVERY_MS : clock.now() };
  };

  async function trim(tenant: string): Promise<{ readonly hasMore: boolean }> {
    await numbering.numberCommitted(tenant);
    const [feed] = await store.read<FeedRow>(findFeed(tenant));
    if (!feed) return { hasMore: false };
    const first = await store.read<EntryRow>(entriesAfter(tenant, feed.floor, ENTRIES_PER_SWEEP));
    const oldest = clock.now() - RETENTION_MS;
    const isExpired = ({ at, number }: EntryRow): boolean => at < oldest || number <= feed.last_number - ENTRIES_MAX;
    const last = first.findLast(isExpired);
    if (!last) return { hasMore: false };
    await commitOrThrow(store, raiseFloor(tenant, last.number));
    return { hasMore: first.at(-1) === last && first.length === ENTRIES_PER_SWEEP };
  }
}
