import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freshFolder, readStore, writeStore } from '../support/database.ts';
import { GOALS, planned, reaches, registerCounting, run, setGoal } from '../support/goals.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { until } from '../support/until.ts';

/**
 * A goal that nobody works on costs two rows: itself and, where it has a deadline, a work item that is due then. Ten
 * thousand of them lie beside a few that are worked on. They are copies of one that was really set.
 */

const IDLE = 10_000;
const DAY_MS = 24 * 60 * 60 * 1_000;

describe('ten thousand goals that nobody works on', () => {
  const folder = freshFolder();
  let host: TestHost;

  beforeAll(async () => {
    host = await startTestHost('sqlite', undefined, { dataFolder: folder.path });
    const { id } = await setGoal(host.as('editor'), { bounds: { runTimeoutMs: 30 * DAY_MS } });
    await host.stop();
    await copyGoal(id);
    host = await host.another();
  });
  afterAll(async () => {
    await host.stop();
    folder.remove();
  });

  /** The goal and its work item, so many times. */
  async function copyGoal(goalId: string): Promise<void> {
    const numbers = `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${IDLE})`;
    const goals = await readStore<object>(host.config, `SELECT * FROM goals WHERE goal_id = '${goalId}'`);
    const columns = Object.keys(goals[0]!).filter((column) => column !== 'goal_id');
    await writeStore(host.config, [
      `${numbers} INSERT INTO goals (goal_id, ${columns.join(', ')})
       SELECT 'goal-copy' || n, ${columns.join(', ')} FROM goals, numbers WHERE goal_id = '${goalId}'`,
      `${numbers} INSERT INTO work (work_id, kind, tenant, payload, due_at, owner, epoch, wakes, crashes)
       SELECT 'goal-copy' || n, kind, tenant, payload, due_at, owner, epoch, wakes, crashes FROM work, numbers
       WHERE work_id = '${goalId}'`,
    ]);
  }

  const count = async (of: string): Promise<number> =>
    Number((await readStore<{ count: number }>(host.config, `SELECT COUNT(*) AS count FROM ${of}`))[0]!.count);

  it('hold no lease, and nothing of them is due before their time', async () => {
    const soon = Date.now() + DAY_MS;
    expect(await count(`goals WHERE state = 'active'`)).toBe(IDLE + 1);
    expect(await count(`work WHERE kind = 'goal'`)).toBe(IDLE + 1);
    expect(await count(`work WHERE kind = 'goal' AND (owner IS NOT NULL OR due_at < ${soon})`)).toBe(0);
  });

  it('keep nothing busy', async () => {
    const goals = `work WHERE kind = 'goal'`;
    const before = await count(goals);
    await until(
      async () => (await host.anonymous.get('/metrics')).text,
      (text) => /^capstan_work_in_hand 0$/m.test(text),
    );
    expect(await count(goals)).toBe(before);
  });

  it('are in nobody else’s way', async () => {
    const api = host.as('editor');
    await registerCounting(api);
    const due = await Promise.all(Array.from({ length: 5 }, () => setGoal(api, { bounds: { runTimeoutMs: 300 } })));
    const worked = await planned(api, { bounds: { maxLoopIterations: 1 } });
    await run(api, worked);
    await reaches(api, worked, 'bound-exceeded');
    for (const { id } of due) await reaches(api, id, 'bound-exceeded');
    const { body } = await api.get(`${GOALS}?state=active`);
    expect(body.goals).toHaveLength(200);
    expect(await count(`goals WHERE state = 'active'`)).toBe(IDLE + 1);
  });
});
