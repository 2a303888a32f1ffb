import { describe, expect, it } from 'vitest';
import type { CommitOutcome, Unit } from '../../../store/sql.ts';
import type { Store } from '../../../store/store.ts';
import { LastUse } from './last-use.ts';

const MINUTE_MS = 60_000;

describe('the last use of a key', () => {
  it('is written once, however many requests come at the same time', async () => {
    const { lastUse, commits, settle } = setUp();
    for (let times = 0; times < 100; times++) lastUse.note(row('a', null), 1_000);
    lastUse.note(row('b', null), 1_000);
    expect(commits).toHaveLength(2);
    await settle();
    lastUse.note(row('a', 1_000), 2_000);
    expect(commits).toHaveLength(2);
  });

  it('is written again after a minute', () => {
    const { lastUse, commits } = setUp();
    lastUse.note(row('a', 1_000), 1_000 + MINUTE_MS - 1);
    expect(commits).toHaveLength(0);
    lastUse.note(row('a', 1_000), 1_000 + MINUTE_MS);
    expect(commits).toHaveLength(1);
  });

  it('that cannot be written is said in the log, and tried again with the next request', async () => {
    const { lastUse, commits, warnings, fail } = setUp();
    lastUse.note(row('a', null), 1_000);
    await fail();
    expect(warnings).toEqual([expect.objectContaining({ keyId: 'a' })]);
    lastUse.note(row('a', null), 1_001);
    expect(commits).toHaveLength(2);
  });
});

const row = (key_id: string, last_used_at: number | null) => ({ key_id, last_used_at });

function setUp() {
  const commits: Unit[] = [];
  const open: PromiseWithResolvers<CommitOutcome>[] = [];
  const warnings: object[] = [];
  const store = {
    commit: (unit: Unit) => {
      commits.push(unit);
      open.push(Promise.withResolvers<CommitOutcome>());
      return open.at(-1)!.promise;
    },
  } as Partial<Store> as Store;
  const log = { debug() {}, info() {}, error() {}, warn: (fields: object) => warnings.push(fields) };
  /** One turn for what follows a commit. */
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    lastUse: new LastUse(store, log),
    commits,
    warnings,
    settle: () => {
      for (const { resolve } of open) resolve({ committed: true, rows: [] });
      return turn();
    },
    fail: () => {
      for (const { reject } of open) reject(new Error('the store is away'));
      return turn();
    },
  };
}
