import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { countCorrections, countShapes } from '../../src/capabilities/learning/synthesis/mining-records.ts';
import {
  findHabit,
  forgetHabits,
  recordHabit,
  SYNTHESIS_TABLES,
} from '../../src/capabilities/learning/synthesis/records.ts';
import { RunCollector } from '../../src/capabilities/learning/synthesis/run-collector.ts';
import { type AnnotationRow, FEEDBACK_TABLES } from '../../src/capabilities/people/feedback/records.ts';
import { Plans } from '../../src/runtime/plans.ts';
import { openPostgres } from '../../src/store/postgres.ts';
import { sql, type Write } from '../../src/store/sql.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import type { Store } from '../../src/store/store.ts';
import { CORE_TABLES } from '../../src/store/tables.ts';
import { freshDatabase, freshFolder } from '../support/database.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { plantedHistory } from '../support/planted-runs.ts';

/**
 * Goal: reading what runs did takes little at a time and nothing twice, whatever order things come in and however many
 * do it. Method: a planted history, and a store that counts what is read from it.
 */

const MIGRATIONS = [...CORE_TABLES, ...FEEDBACK_TABLES, ...SYNTHESIS_TABLES];
const RUNS = 600;
const PROMPTS = [
  { templateId: 'speaker', version: '1.0.0' },
  { templateId: 'other-speaker', version: '1.0.0' },
] as const;

const STORES: Record<string, (clock: ManualClock) => Promise<Store>> = {
  SQLite: (clock) => openSqlite({ folder: freshFolder().path, clock, migrations: MIGRATIONS }),
  PostgreSQL: async (clock) =>
    openPostgres({ url: await freshDatabase(inject('postgresUrl')), clock, migrations: MIGRATIONS, useOwnClock: true }),
};

describe.each(Object.keys(STORES))('reading for habits on %s', (kind) => {
  const clock = new ManualClock();
  let store: Store;
  let [mostRowsAtOnce, eventsRead] = [0, 0];

  beforeEach(async () => {
    store = await STORES[kind]!(clock);
    [mostRowsAtOnce, eventsRead] = [0, 0];
  });
  afterEach(() => store.close());

  const countingReads = (): Store => ({
    ...store,
    commit: (unit) => store.commit(unit),
    read: async (statement) => {
      const rows = await store.read(statement);
      // Ids are short, rows and events need not be.
      const isOfIds = statement.sql.startsWith('SELECT run_id, ended_at FROM');
      if (!isOfIds) mostRowsAtOnce = Math.max(mostRowsAtOnce, rows.length);
      if (statement.sql.includes('FROM events')) eventsRead += rows.length;
      return rows as never;
    },
  });

  const corrections = async (tenant: string, after: { created_at: number; annotation_id: string }, limit: number) => {
    const rows = await store.read<AnnotationRow>(
      sql(
        `SELECT annotation_id, run_id, workspace, workflow_id, node_id, created_at FROM annotations
         WHERE tenant = $1 AND (created_at, annotation_id) > ($2, $3) ORDER BY created_at, annotation_id LIMIT $4`,
        tenant,
        after.created_at,
        after.annotation_id,
        limit,
      ),
    );
    return rows.map((row) => ({ ...row, target: { nodeId: row.node_id! } }));
  };

  const collector = (): RunCollector =>
    new RunCollector({ store: countingReads(), clock, plans: new Plans(store) }, { corrections });

  async function plant(tenant: string): Promise<void> {
    const planting = { tenant, runs: RUNS, seed: 5, until: clock.now(), prompts: PROMPTS };
    const unit: Write[] = [...plantedHistory(planting)];
    expect(await store.commit(unit)).toMatchObject({ committed: true });
  }

  const readRuns = async (): Promise<number> => {
    const [row] = await store.read<{ count: number }>(sql('SELECT COUNT(*) AS count FROM synthesis_runs'));
    return Number(row!.count);
  };

  it('takes in a page at a time, once, of one tenant alone', async () => {
    await plant('alpha');
    await plantOther();
    expect(await collector().collect({ tenant: 'alpha' })).toBe(RUNS);
    expect(mostRowsAtOnce).toBeLessThanOrEqual(500);
    const eventsBefore = eventsRead;
    expect(eventsBefore).toBeGreaterThan(RUNS);
    expect(await collector().collect({ tenant: 'alpha' })).toBe(0);
    expect(eventsRead).toBe(eventsBefore);
    expect(await readRuns()).toBe(RUNS);
  });

  it('has all events of a long run, and of the runs after it', async () => {
    await plant('alpha');
    const [long] = await store.read<{ run_id: string; body: string }>(
      sql(`SELECT run_id, body FROM events JOIN runs USING (run_id)
           WHERE type = 'node.started' AND status = 'completed' ORDER BY run_id LIMIT 1`),
    );
    const event = JSON.parse(long!.body);
    const added = Array.from({ length: 1_200 }, (_, index) => {
      const payload = { ...event.payload, nodeId: `added-${index}` };
      return {
        sql: 'INSERT INTO events (run_id, sequence, type, body) VALUES ($1, $2, $3, $4)',
        params: [long!.run_id, 1_000 + index, event.type, JSON.stringify({ ...event, payload })],
      };
    });
    expect(await store.commit(added)).toMatchObject({ committed: true });
    expect(await collector().collect({ tenant: 'alpha' })).toBe(RUNS);
    expect(mostRowsAtOnce).toBe(500);
    const shapes = await store.read<{ run_id: string; nodes: string }>(
      sql(`SELECT run_id, nodes FROM synthesis_runs JOIN synthesis_shapes USING (tenant, shape)`),
    );
    const nodesOf = new Map(shapes.map(({ run_id, nodes }) => [run_id, JSON.parse(nodes) as string[]]));
    expect(nodesOf.get(long!.run_id)!.filter((id) => id.startsWith('added-'))).toHaveLength(1_200);
    expect([...nodesOf.values()].every((nodes) => nodes.length > 0)).toBe(true);
  });

  it('by several at once counts everything once', async () => {
    await plant('alpha');
    await Promise.all([1, 2, 3].map(() => collector().collect({ tenant: 'alpha' })));
    expect(await readRuns()).toBe(RUNS);
    const shapes = await store.read<{ runs: number; workflow_id: string }>(countShapes({ tenant: 'alpha' }, 100));
    const speaking = shapes.filter(({ workflow_id }) => workflow_id === 'habit-speaking');
    expect(speaking).toMatchObject([{ runs: 50 }]);
    const prompts = await store.read(countCorrections({ tenant: 'alpha' }, 3, 10));
    expect(prompts).toEqual([{ template_id: 'speaker', version: '1.0.0', corrections: 12 }]);
  });

  it('finds what was written late, and forgets what is not kept', async () => {
    await plant('alpha');
    const [late] = await store.read<{ run_id: string; ended_at: number }>(
      sql('SELECT run_id, ended_at FROM runs ORDER BY ended_at DESC LIMIT 1'),
    );
    const live = { sql: 'UPDATE runs SET ended_at = NULL WHERE run_id = $1', params: [late!.run_id] };
    await store.commit([live]);
    expect(await collector().collect({ tenant: 'alpha' })).toBe(RUNS - 1);
    const over = { sql: 'UPDATE runs SET ended_at = $1 WHERE run_id = $2', params: [late!.ended_at, late!.run_id] };
    await store.commit([over]);
    expect(await collector().collect({ tenant: 'alpha' })).toBe(1);
    await store.commit(forgetHabits({ tenant: 'alpha', runId: late!.run_id }));
    expect(await readRuns()).toBe(RUNS - 1);
  });

  it('is followed by one draft of a habit, whoever has seen more of it', async () => {
    const seenTo = (last: number) => ({ support: last, through: `run-${last}`, proposal_id: `prop-${last}` });
    const first = seenTo(3);
    const keeping = (seen: typeof first, known?: typeof first) =>
      store.commit([recordHabit('alpha', 'h', seen, known)]);
    expect(await keeping(first)).toMatchObject({ committed: true });
    expect(await keeping(seenTo(4))).toMatchObject({ committed: false });
    const grown = seenTo(6);
    expect(await keeping(grown, first)).toMatchObject({ committed: true });
    expect(await keeping(seenTo(7), first)).toMatchObject({ committed: false });
    expect(await store.read(findHabit('alpha', 'h'))).toEqual([grown]);
  });

  /** The same history, of somebody else: ids of runs are everybody's. */
  async function plantOther(): Promise<void> {
    const moved = [...plantedHistory({ tenant: 'beta', runs: 100, seed: 5, until: clock.now(), prompts: PROMPTS })].map(
      (write) => ({
        ...write,
        params: write.params.map((value) =>
          typeof value === 'string' ? value.replace(/^(run|ann)-0/, '$1-z') : value,
        ),
      }),
    );
    expect(await store.commit(moved)).toMatchObject({ committed: true });
  }
});
