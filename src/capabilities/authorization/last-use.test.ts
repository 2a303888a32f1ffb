import { describe, expect, it } from 'vitest';
import type { CommitOutcome, Unit, Write } from '../../store/sql.ts';
import type { Store } from '../../store/store.ts';
import type { AuditService } from '../audit/service.ts';
import { LastUse } from './last-use.ts';
import type { KeyRow } from './records.ts';

type AuditRecord = Parameters<AuditService['record']>[0];

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

  it('goes to the audit log once a day', async () => {
    const { lastUse, commits, settle } = setUp();
    const dayMs = 24 * 60 * MINUTE_MS;
    const uses: [last: number | null, now: number][] = [
      [null, 5 * dayMs],
      [5 * dayMs, 5 * dayMs + MINUTE_MS],
      [5 * dayMs + MINUTE_MS, 6 * dayMs - 1],
      [6 * dayMs - 1, 6 * dayMs + MINUTE_MS],
    ];
    for (const [last, now] of uses) {
      lastUse.note(row('a', last), now);
      await settle();
    }
    expect(commits.map((unit) => unit.length)).toEqual([2, 1, 1, 2]);
    expect(commits[0]![1]).toEqual({ sql: 'audit', params: ['alpha#test', 'somebody', 'key.used', 'a'] });
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

const row = (key_id: string, last_used_at: number | null): KeyRow => ({
  key_id,
  hash: '',
  name: 'a key',
  prefix: '',
  tenant: 'alpha',
  workspace: null,
  principal: 'somebody',
  role: 'viewer',
  scopes: '[]',
  is_test: 1,
  created_at: 0,
  expires_at: null,
  revoked_at: null,
  last_used_at,
});

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
  const audit = {
    record: ({ tenant, actor, action, target = '' }: AuditRecord): Write[] => [
      { sql: 'audit', params: [tenant, actor, action, target] },
    ],
  };
  /** One turn for what follows a commit. */
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    lastUse: new LastUse(store, log, audit),
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
