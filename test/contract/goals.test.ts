import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import {
  findGoalRun,
  GOAL_TABLES,
  type GoalRunRow,
  insertGoalRun,
  noteJudging,
  noteVerdict,
} from '../../src/capabilities/learning/goals/records.ts';
import { openPostgres } from '../../src/store/postgres.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import type { Store } from '../../src/store/store.ts';
import { CORE_TABLES } from '../../src/store/tables.ts';
import { freshDatabase, freshFolder } from '../support/database.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** Goal: what is kept of a verdict is kept once, by the store itself, whoever believes to be the only one who judges. */

const MIGRATIONS = [...CORE_TABLES, ...GOAL_TABLES];
const REF = { tenant: 'alpha', runId: 'run-1' };

const STORES: Record<string, (clock: ManualClock) => Promise<Store>> = {
  SQLite: (clock) => openSqlite({ folder: freshFolder().path, clock, migrations: MIGRATIONS }),
  PostgreSQL: async (clock) =>
    openPostgres({ url: await freshDatabase(inject('postgresUrl')), clock, migrations: MIGRATIONS, useOwnClock: true }),
};

describe.each(Object.keys(STORES))('a verdict on %s', (kind) => {
  let store: Store;
  beforeEach(async () => {
    store = await STORES[kind]!(new ManualClock());
    const row = { run_id: 'run-1', goal_id: 'goal-1', tenant: 'alpha', workspace: null, number: 1, started_at: 1 };
    await store.commit([insertGoalRun(row)]);
  });
  afterEach(() => store.close());

  const verdict = (satisfied: boolean, judge: string) =>
    noteVerdict(REF, { verdict: JSON.stringify({ satisfied }), judge, satisfied, at: 2 });
  const kept = async () => (await store.read<GoalRunRow>(findGoalRun(REF)))[0]!;

  it('is given once: of rivals one is heard, and nobody afterwards', async () => {
    const given = await Promise.all(['one', 'two', 'three'].map((judge) => store.commit([verdict(false, judge)])));
    expect(given.filter(({ committed }) => committed)).toHaveLength(1);
    const before = await kept();
    expect((await store.commit([verdict(true, 'late')])).committed).toBe(false);
    expect(await kept()).toEqual(before);
  });

  it('ends judging: what is noted of that later is refused, as is what others were quicker with', async () => {
    expect((await store.commit([noteJudging(REF, null, 'first')])).committed).toBe(true);
    expect((await store.commit([noteJudging(REF, null, 'rival')])).committed).toBe(false);
    await store.commit([verdict(false, 'one')]);
    expect((await store.commit([noteJudging(REF, null, 'late')])).committed).toBe(false);
    expect(await kept()).toMatchObject({ judging: null, judge: 'one' });
  });

  it('is that of its tenant', async () => {
    const foreign = { ...REF, tenant: 'beta' };
    const given = { verdict: '{}', judge: 'x', satisfied: true, at: 2 };
    expect((await store.commit([noteVerdict(foreign, given)])).committed).toBe(false);
    expect(await store.read(findGoalRun(foreign))).toEqual([]);
  });
});
