import type { GoalState } from '../../../protocol/learning/goals.ts';
import type { RunRef, Visibility } from '../../../store/log.ts';
import { addOrWake, addOrWakeEach } from '../../../store/queue.ts';
import { type Param, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';
import { SUBJECT_COLUMNS, type SubjectColumns } from '../../starting/starter/self-starting.ts';

export const GOAL_TABLES: readonly Migration[] = [
  {
    id: 'goals/0001',
    statements: [
      // `body` is everything that is looked at only with the goal in hand. `version` moves with every change, so that
      // nobody decides on a goal that has become another meanwhile. `run_id` is the run whose log tells its life.
      `CREATE TABLE goals (
        goal_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        tenant_name TEXT NOT NULL,
        workspace TEXT,
        principal TEXT NOT NULL,
        issuer TEXT NOT NULL,
        lane TEXT NOT NULL,
        run_id TEXT NOT NULL,
        state TEXT NOT NULL,
        body TEXT NOT NULL,
        version BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        stopped_at BIGINT
      ) $clustered`,
      'CREATE INDEX goals_by_tenant ON goals (tenant, goal_id)',
      'CREATE INDEX goals_by_state ON goals (tenant, state, goal_id)',
      `CREATE INDEX goals_escalated ON goals (tenant, stopped_at, goal_id) WHERE state = 'escalated'`,
      // What a goal has been about, from the first wording on.
      `CREATE TABLE goal_objectives (
        goal_id TEXT NOT NULL,
        version BIGINT NOT NULL,
        objective TEXT NOT NULL,
        principal TEXT NOT NULL,
        at BIGINT NOT NULL,
        PRIMARY KEY (goal_id, version)
      ) $clustered`,
      // Contributing runs. `asks` is an interrupt in which one of them is too unsure to go on, `heeded` whether it has
      // stopped the goal already. `judging` is how far judging has come; from `judged_at` on `verdict` never changes.
      `CREATE TABLE goal_runs (
        run_id TEXT PRIMARY KEY,
        goal_id TEXT NOT NULL,
        tenant TEXT NOT NULL,
        workspace TEXT,
        number BIGINT NOT NULL,
        started_at BIGINT NOT NULL,
        ended_at BIGINT,
        asks TEXT,
        heeded BIGINT NOT NULL,
        judging TEXT,
        judged_at BIGINT,
        verdict TEXT,
        judge TEXT,
        satisfied BIGINT,
        agreed BIGINT,
        disputed_by TEXT,
        disputed_at BIGINT
      ) $clustered`,
      'CREATE UNIQUE INDEX goal_runs_by_goal ON goal_runs (goal_id, number)',
      'CREATE INDEX goal_runs_unjudged ON goal_runs (goal_id, number) WHERE judged_at IS NULL',
      'CREATE INDEX goal_runs_by_judge ON goal_runs (tenant, judge) WHERE judge IS NOT NULL',
      'CREATE INDEX goal_runs_disputed ON goal_runs (tenant, disputed_at, run_id) WHERE disputed_at IS NOT NULL',
    ],
  },
];

export interface GoalRow extends SubjectColumns {
  readonly goal_id: string;
  readonly run_id: string;
  readonly state: GoalState;
  readonly body: string;
  readonly version: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly stopped_at: number | null;
}

const GOAL_COLUMNS = [
  'goal_id',
  ...SUBJECT_COLUMNS,
  'run_id',
  'state',
  'body',
  'version',
  'created_at',
  'updated_at',
  'stopped_at',
] as const satisfies readonly (keyof GoalRow)[];

/** Refused when the tenant has too many that are not over. */
export function insertGoal(row: GoalRow, most: number): Write {
  const params: Param[] = GOAL_COLUMNS.map((column) => row[column]);
  const places = params.map((_, index) => `$${index + 1}`).join(', ');
  const tenant = GOAL_COLUMNS.indexOf('tenant') + 1;
  return {
    sql: `INSERT INTO goals (${GOAL_COLUMNS.join(', ')}) SELECT ${places}
          WHERE (SELECT COUNT(*) FROM goals WHERE tenant = $${tenant} AND state IN ('active', 'escalated'))
            < $${params.push(most)}`,
    params,
    expect: 1,
    keeps: 'goals',
  };
}

/** Refused when the goal has changed since it was read. */
export function moveGoal({ goal_id, tenant, version, state, body, updated_at, stopped_at }: GoalRow): Write {
  return {
    sql: `UPDATE goals SET state = $1, body = $2, updated_at = $3, stopped_at = $4, version = version + 1
          WHERE goal_id = $5 AND tenant = $6 AND version = $7`,
    params: [state, body, updated_at, stopped_at, goal_id, tenant, version],
    expect: 1,
    keeps: 'goal',
  };
}

export function findGoal({ tenant, workspace }: Visibility, goalId: string): Statement {
  const found = 'SELECT * FROM goals WHERE goal_id = $1 AND tenant = $2';
  if (workspace === undefined) return sql(found, goalId, tenant);
  return sql(`${found} AND workspace = $3`, goalId, tenant, workspace);
}

export interface GoalFilter {
  readonly state?: GoalState | undefined;
  /** Where the page before ended. */
  readonly before?: string | undefined;
}

/** Newest first: ids sort by the time they were made. */
export function listGoals({ tenant, workspace }: Visibility, { state, before }: GoalFilter, limit: number): Statement {
  const params: Param[] = [tenant];
  const where = ['tenant = $1'];
  if (workspace !== undefined) where.push(`workspace = $${params.push(workspace)}`);
  if (state !== undefined) where.push(`state = $${params.push(state)}`);
  if (before !== undefined) where.push(`goal_id < $${params.push(before)}`);
  const limited = `$${params.push(limit)}`;
  return { sql: `SELECT * FROM goals WHERE ${where.join(' AND ')} ORDER BY goal_id DESC LIMIT ${limited}`, params };
}

/** A place in a list that goes back in time. */
export interface Since {
  readonly at: number;
  readonly id: string;
}

/** Goals that wait for a person, what stopped last first. */
export function listEscalated(visibility: Visibility, before: Since | undefined, limit: number): Statement {
  return listBack('goals', `state = 'escalated'`, 'stopped_at', 'goal_id', visibility, before, limit);
}

/** Verdicts that somebody contradicts, latest first. */
export function listDisputed(visibility: Visibility, before: Since | undefined, limit: number): Statement {
  return listBack('goal_runs', 'disputed_at IS NOT NULL', 'disputed_at', 'run_id', visibility, before, limit);
}

function listBack(
  table: string,
  condition: string,
  time: string,
  id: string,
  { tenant, workspace }: Visibility,
  before: Since | undefined,
  limit: number,
): Statement {
  const params: Param[] = [tenant];
  const where = ['tenant = $1', condition];
  if (workspace !== undefined) where.push(`workspace = $${params.push(workspace)}`);
  if (before) where.push(`(${time}, ${id}) < ($${params.push(before.at)}, $${params.push(before.id)})`);
  const limited = `$${params.push(limit)}`;
  return {
    sql: `SELECT * FROM ${table} WHERE ${where.join(' AND ')} ORDER BY ${time} DESC, ${id} DESC LIMIT ${limited}`,
    params,
  };
}

export interface ObjectiveRow {
  readonly goal_id: string;
  readonly version: number;
  readonly objective: string;
  readonly principal: string;
  readonly at: number;
}

export function insertObjective({ goal_id, version, objective, principal, at }: ObjectiveRow): Write {
  return {
    sql: 'INSERT INTO goal_objectives (goal_id, version, objective, principal, at) VALUES ($1, $2, $3, $4, $5)',
    params: [goal_id, version, objective, principal, at],
  };
}

const OBJECTIVES_MAX = 1_000;

export function listObjectives(goalId: string): Statement {
  return sql('SELECT * FROM goal_objectives WHERE goal_id = $1 ORDER BY version LIMIT $2', goalId, OBJECTIVES_MAX);
}

export interface GoalRunRow {
  readonly run_id: string;
  readonly goal_id: string;
  readonly tenant: string;
  readonly workspace: string | null;
  readonly number: number;
  readonly started_at: number;
  readonly ended_at: number | null;
  readonly asks: string | null;
  readonly heeded: number;
  readonly judging: string | null;
  readonly judged_at: number | null;
  readonly verdict: string | null;
  readonly judge: string | null;
  readonly satisfied: number | null;
  readonly disputed_by: string | null;
  readonly disputed_at: number | null;
}

export function insertGoalRun(
  row: Pick<GoalRunRow, 'run_id' | 'goal_id' | 'tenant' | 'workspace' | 'number' | 'started_at'>,
): Write {
  return {
    sql: `INSERT INTO goal_runs (run_id, goal_id, tenant, workspace, number, started_at, heeded)
          VALUES ($1, $2, $3, $4, $5, $6, 0)`,
    params: [row.run_id, row.goal_id, row.tenant, row.workspace, row.number, row.started_at],
  };
}

/** Nothing, unless it is a contributing run. A question that nobody answered stays one. */
export function noteEnd({ tenant, runId }: RunRef, at: number): Write {
  return {
    sql: 'UPDATE goal_runs SET ended_at = $1 WHERE run_id = $2 AND tenant = $3',
    params: [at, runId, tenant],
  };
}

/** A run and those above it, up to one that contributes to a goal: who is unsure may have been sent by another. */
const UPWARDS = `WITH RECURSIVE up (run_id, parent_run_id) AS (
    SELECT run_id, parent_run_id FROM runs WHERE run_id = $1 AND tenant = $2
    UNION ALL SELECT runs.run_id, runs.parent_run_id FROM runs JOIN up ON runs.run_id = up.parent_run_id)`;

export function noteQuestion({ tenant, runId }: RunRef, interruptId: string): Write {
  return {
    sql: `${UPWARDS} UPDATE goal_runs SET asks = $3, heeded = 0
          WHERE run_id IN (SELECT run_id FROM up) AND tenant = $2`,
    params: [runId, tenant, interruptId],
  };
}

export function noteAnswer({ tenant, runId }: RunRef, interruptId: string): Write {
  return {
    sql: `${UPWARDS} UPDATE goal_runs SET asks = NULL
          WHERE run_id IN (SELECT run_id FROM up) AND tenant = $2 AND asks = $3`,
    params: [runId, tenant, interruptId],
  };
}

/** Calls for somebody to look after the goal that a run contributes to, if there is one. */
export function callForGoalOf({ tenant, runId }: RunRef, kind: string): Write {
  const from = 'goal_runs WHERE run_id IN (SELECT run_id FROM up) AND tenant = $2';
  return addOrWakeEach({ with: UPWARDS, workId: 'goal_id', from, params: [runId, tenant] }, { kind, tenant });
}

/** Calls for somebody to look after a goal, now or at some time. */
export function callFor({ goal_id, tenant }: Pick<GoalRow, 'goal_id' | 'tenant'>, kind: string, at?: number): Write {
  return addOrWake({ workId: goal_id, kind, tenant, dueAt: at });
}

/** What is too unsure to go on, and has not stopped the goal yet. */
export function findQuestion({ goal_id, tenant }: Pick<GoalRow, 'goal_id' | 'tenant'>): Statement {
  return sql(
    `SELECT * FROM goal_runs WHERE goal_id = $1 AND tenant = $2 AND judged_at IS NULL
       AND asks IS NOT NULL AND heeded = 0 ORDER BY number LIMIT 1`,
    goal_id,
    tenant,
  );
}

/** Every question that is open now has stopped the goal: none of them does so again. */
export function heedQuestions({ goal_id, tenant }: Pick<GoalRow, 'goal_id' | 'tenant'>): Write {
  return {
    sql: `UPDATE goal_runs SET heeded = 1
          WHERE goal_id = $1 AND tenant = $2 AND judged_at IS NULL AND asks IS NOT NULL`,
    params: [goal_id, tenant],
  };
}

/** The first run that has ended and waits for its verdict. */
export function findUnjudged({ goal_id, tenant }: Pick<GoalRow, 'goal_id' | 'tenant'>): Statement {
  return sql(
    `SELECT * FROM goal_runs WHERE goal_id = $1 AND tenant = $2 AND judged_at IS NULL AND ended_at IS NOT NULL
     ORDER BY number LIMIT 1`,
    goal_id,
    tenant,
  );
}

export function findGoalRun({ tenant, runId }: RunRef): Statement {
  return sql('SELECT * FROM goal_runs WHERE run_id = $1 AND tenant = $2', runId, tenant);
}

/** How far judging has come. Refused when somebody else has gone on with it since `before` was read. */
export function noteJudging({ tenant, runId }: RunRef, before: string | null, judging: string): Write {
  return {
    sql: `UPDATE goal_runs SET judging = $1
          WHERE run_id = $2 AND tenant = $3 AND judged_at IS NULL AND COALESCE(judging, '') = $4`,
    params: [judging, runId, tenant, before ?? ''],
    expect: 1,
    keeps: 'goal',
  };
}

/** A verdict is given once. */
export function noteVerdict(
  { tenant, runId }: RunRef,
  { verdict, judge, satisfied, at }: { verdict: string; judge: string; satisfied: boolean; at: number },
): Write {
  return {
    sql: `UPDATE goal_runs SET verdict = $1, judge = $2, satisfied = $3, judged_at = $4, judging = NULL
          WHERE run_id = $5 AND tenant = $6 AND judged_at IS NULL`,
    params: [verdict, judge, Number(satisfied), at, runId, tenant],
    expect: 1,
    keeps: 'goal',
  };
}

/** Of a goal that has more runs behind it, only so many are named. */
const CONTRIBUTIONS_MAX = 1_000;

/** Runs that were judged, in their order. */
export function listContributions(goalIds: readonly string[]): Statement {
  const places = goalIds.map((_, index) => `$${index + 1}`).join(', ');
  return {
    sql: `SELECT goal_id, run_id FROM goal_runs WHERE goal_id IN (${places}) AND judged_at IS NOT NULL
            AND number > (SELECT MAX(number) FROM goal_runs latest WHERE latest.goal_id = goal_runs.goal_id)
              - ${CONTRIBUTIONS_MAX}
          ORDER BY goal_id, number`,
    params: goalIds,
  };
}

/** Verdicts, latest first. */
export function listVerdicts(goalId: string, before: number, limit: number): Statement {
  return sql(
    `SELECT * FROM goal_runs WHERE goal_id = $1 AND judged_at IS NOT NULL AND number < $2
     ORDER BY number DESC LIMIT $3`,
    goalId,
    before,
    limit,
  );
}

/** What somebody thinks of verdicts that were in the affirmative, or of those that were not. */
export interface Stand {
  readonly ofSatisfied: boolean;
  readonly agrees: boolean;
  readonly principal: string;
  readonly at: number;
}

export function noteStand({ tenant, runId }: RunRef, { ofSatisfied, agrees, principal, at }: Stand): Write {
  const dispute = agrees ? '' : ', disputed_by = $4, disputed_at = $5';
  return {
    sql: `UPDATE goal_runs SET agreed = ${Number(agrees)}${dispute}
          WHERE run_id = $1 AND tenant = $2 AND satisfied = $3`,
    params: [runId, tenant, Number(ofSatisfied), ...(agrees ? [] : [principal, at])],
  };
}

/** Somebody has looked into it. That it was disputed stays. */
export function closeDispute({ tenant, runId }: RunRef): Write {
  return {
    sql: 'UPDATE goal_runs SET disputed_at = NULL WHERE run_id = $1 AND tenant = $2',
    params: [runId, tenant],
  };
}

export interface CalibrationRow {
  readonly judge: string;
  readonly verdicts: number;
  readonly agreed: number;
  readonly disputed: number;
}

export function calibrate({ tenant, workspace }: Visibility): Statement {
  const params: Param[] = [tenant];
  const within = workspace === undefined ? '' : `AND workspace = $${params.push(workspace)}`;
  return {
    sql: `SELECT judge, COUNT(*) AS verdicts, CAST(COALESCE(SUM(agreed), 0) AS BIGINT) AS agreed,
            CAST(COALESCE(SUM(1 - agreed), 0) AS BIGINT) AS disputed
          FROM goal_runs WHERE tenant = $1 AND judge IS NOT NULL ${within} GROUP BY judge ORDER BY judge`,
    params,
  };
}
