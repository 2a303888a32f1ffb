import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import type { WorkItem } from '../../../store/queue.ts';
import { openInMemory } from '../../../store/sqlite.ts';
import type { Store } from '../../../store/store.ts';
import { Numbering } from './numbering.ts';
import { type EntryRow, entriesAfter, FEED_TABLES, type FeedRow, findFeed, insertEntry, keepFeed } from './records.ts';
import { RETENTION_MS } from './rules.ts';
import { sweepHandler } from './work.ts';

describe('the sweep of feeds', () => {
  const clock = new ManualClock();
  let store: Store;
  beforeEach(async () => {
    store = await openInMemory({ clock, migrations: FEED_TABLES });
  });
  afterEach(async () => {
    await store.close();
  });

  const begin = (tenant: string): Promise<unknown> =>
    store.commit([keepFeed(tenant, `feed-of-${tenant}`, RETENTION_MS)]);
  const add = (tenant: string, count: number): Promise<unknown> => {
    const entry = { tenant, workspace: undefined, at: clock.now(), event: 'run.status', data: '{}' };
    return store.commit(Array.from({ length: count }, () => insertEntry(entry)));
  };
  const entries = async (tenant: string): Promise<EntryRow[]> => {
    await new Numbering(store).numberCommitted(tenant);
    return store.read<EntryRow>(entriesAfter(tenant, 0, 1_000_000));
  };
  const feedOf = async (tenant: string): Promise<FeedRow | undefined> =>
    (await store.read<FeedRow>(findFeed(tenant)))[0];
  /** Sweeps until nothing is left to do, and returns the number of turns. */
  const sweep = async (): Promise<number> => {
    const handle = sweepHandler({ store, clock });
    for (let turns = 1; ; turns++) {
      const { dueAgainAt } = await handle({} as WorkItem);
      if (dueAgainAt! > clock.now()) return turns;
    }
  };

  it('deletes old entries and raises the floor behind them', async () => {
    await begin('alpha');
    await add('alpha', 3);
    clock.advance(RETENTION_MS / 2);
    await begin('alpha');
    await add('alpha', 2);
    await sweep();
    expect(await entries('alpha')).toHaveLength(5);
    clock.advance(RETENTION_MS / 2 + 1);
    await begin('alpha');
    await sweep();
    const [first, ...rest] = await entries('alpha');
    expect(rest).toHaveLength(1);
    expect(await feedOf('alpha')).toMatchObject({ floor: 3, last_number: 5 });
    expect(first!.number).toBe(4);
  });

  it('ends feeds that nobody reads any more, and stores no further entries', async () => {
    await begin('alpha');
    await begin('beta');
    await add('alpha', 2);
    clock.advance(RETENTION_MS / 2);
    await begin('beta');
    await add('beta', 2);
    clock.advance(RETENTION_MS / 2 + 1);
    await sweep();
    expect(await feedOf('alpha')).toBeUndefined();
    expect(await entries('alpha')).toEqual([]);
    await add('alpha', 2);
    expect(await entries('alpha')).toEqual([]);
    expect(await entries('beta')).toHaveLength(2);
  });

  it('limits the number of entries, a part at a time', async () => {
    await begin('alpha');
    await add('alpha', 107_000);
    expect(await sweep()).toBe(2);
    expect(await entries('alpha')).toHaveLength(100_000);
  });

  it('uses each number once, even when all entries are deleted', async () => {
    await begin('alpha');
    await add('alpha', 2);
    await sweep();
    clock.advance(RETENTION_MS + 1);
    await begin('alpha');
    await sweep();
    expect(await entries('alpha')).toEqual([]);
    await add('alpha', 1);
    expect((await entries('alpha')).map(({ number }) => number)).toEqual([3]);
  });
});
