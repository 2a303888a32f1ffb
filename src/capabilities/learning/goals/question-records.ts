import type { RunRef } from '../../../store/log.ts';
import { addOrWakeEach } from '../../../store/queue.ts';
import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { GoalRow } from './records.ts';

/** The column that says whether the open question of a run has escalated its goal. */
const HAS_ESCALATED = 'heeded';

/** Notes the end of a contributing run; of other runs nothing is stored. The run goes on asking what was not answered. */
export function noteEnd({ tenant, runId }: RunRef, at: number): Write[] {
  return [
    {
      sql: 'UPDATE goal_runs SET ended_at = $1 WHERE run_id = $2 AND tenant = $3',
      params: [at, runId, tenant],
    },
    { sql: 'DELETE FROM goal_questions WHERE run_id = $1 AND tenant = $2', params: [runId, tenant] },
  ];
}

/** A run and its ancestors: the one that is unsure may be a child of the one that contributes to a goal. */
const UPWARDS = `WITH RECURSIVE up (run_id, parent_run_id) AS (
    SELECT run_id, parent_run_id FROM runs WHERE run_id = $1 AND tenant = $2
    UNION ALL SELECT runs.run_id, runs.parent_run_id FROM runs JOIN up ON runs.run_id = up.parent_run_id)`;

/** Notes the interrupt in which a contributing run, or a child of one, is unsure. */
export function noteQuestion({ tenant, runId }: RunRef, interruptId: string): Write[] {
  const params = [runId, tenant, interruptId];
  return [
    {
      sql: `${UPWARDS} UPDATE goal_runs SET asks = $3, ${HAS_ESCALATED} = 0
            WHERE run_id IN (SELECT run_id FROM up) AND tenant = $2`,
      params,
    },
    {
      sql: `${UPWARDS} INSERT INTO goal_questions (run_id, interrupt_id, tenant)
            SELECT run_id, CAST($3 AS TEXT), tenant FROM goal_runs
            WHERE run_id IN (SELECT run_id FROM up) AND tenant = $2
            ON CONFLICT (run_id, interrupt_id) DO NOTHING`,
      params,
    },
  ];
}

/** Notes that such an interrupt was answered. While others are not, the contributing run asks one of them. */
export function noteAnswer({ tenant, runId }: RunRef, interruptId: string): Write[] {
  const its = 'run_id IN (SELECT run_id FROM up) AND tenant = $2';
  const others = 'SELECT MIN(interrupt_id) FROM goal_questions WHERE goal_questions.run_id = goal_runs.run_id';
  return [
    // Locks the row first: of two answers at the same time, the second sees what the first has deleted.
    {
      sql: `${UPWARDS} UPDATE goal_runs SET ${HAS_ESCALATED} = ${HAS_ESCALATED} WHERE ${its} AND asks IS NOT NULL`,
      params: [runId, tenant],
    },
    {
      sql: `${UPWARDS} DELETE FROM goal_questions WHERE ${its} AND interrupt_id = $3`,
      params: [runId, tenant, interruptId],
    },
    {
      sql: `${UPWARDS} UPDATE goal_runs SET asks = (${others}) WHERE ${its} AND asks = $3`,
      params: [runId, tenant, interruptId],
    },
  ];
}

/** Makes the work item of the goal that a run contributes to due now, if there is such a goal. */
export function wakeGoalOf({ tenant, runId }: RunRef, kind: string): Write {
  const from = 'goal_runs WHERE run_id IN (SELECT run_id FROM up) AND tenant = $2';
  return addOrWakeEach({ with: UPWARDS, workId: 'goal_id', from, params: [runId, tenant] }, { kind, tenant });
}

/** The first run with an open question that has not escalated the goal yet. */
export function findQuestion({ goal_id, tenant }: Pick<GoalRow, 'goal_id' | 'tenant'>): Statement {
  return sql(
    `SELECT * FROM goal_runs WHERE goal_id = $1 AND tenant = $2 AND judged_at IS NULL
       AND asks IS NOT NULL AND ${HAS_ESCALATED} = 0 ORDER BY number LIMIT 1`,
    goal_id,
    tenant,
  );
}

/** Marks every open question as one that has escalated the goal, so that none does so again. */
export function markQuestionsEscalated({ goal_id, tenant }: Pick<GoalRow, 'goal_id' | 'tenant'>): Write {
  return {
    sql: `UPDATE goal_runs SET ${HAS_ESCALATED} = 1
          WHERE goal_id = $1 AND tenant = $2 AND judged_at IS NULL AND asks IS NOT NULL`,
    params: [goal_id, tenant],
  };
}
