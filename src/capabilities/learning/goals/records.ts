import type { GoalState } from '../../../protocol/learning/goals.ts';
import type { RunRef, Visibility } from '../../../store/log.ts';
import { addOrWake } from '../../../store/queue.ts';
import { type Param, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';
import { SUBJECT_COLUMNS, type SubjectColumns } from '../../subject-columns.ts';

/** The tables of goals. */
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
      // Contributing runs. `asks` is an interrupt in which one of them is too unsure to go on, `heeded` whether that has
      // escalated the goal already. `judging` is how far judging has come; from `judged_at` on `verdict` never changes.
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
  {
    id: 'goals/0002',
    statements: [
      // Since when nothing starts the runs of an active goal; the body says why.
      'ALTER TABLE goals ADD COLUMN stalled_at BIGINT',
      'CREATE INDEX goals_stalled ON goals (tenant, stalled_at, goal_id) WHERE stalled_at IS NOT NULL',
    ],
  },
  {
    id: 'goals/0003',
    statements: [
      // What people say that the verdict on a run should be. `said` is what the judge said where a person decided;
      // `awaits_person` marks a run whose verdict waits for that.
      'ALTER TABLE goal_runs ADD COLUMN awaits_person BIGINT',
      'ALTER TABLE goal_runs ADD COLUMN said BIGINT',
      'ALTER TABLE goal_runs ADD COLUMN expected BIGINT',
      'ALTER TABLE goal_runs ADD COLUMN opinion_by TEXT',
      'ALTER TABLE goal_runs ADD COLUMN opinion_at BIGINT',
      'CREATE INDEX goal_runs_reviewed ON goal_runs (tenant, judge) WHERE agreed IS NOT NULL',
      'CREATE INDEX goal_runs_in_order ON goal_runs (tenant, judged_at, run_id) WHERE judged_at IS NOT NULL',
    ],
  },
  {
    id: 'goals/0004',
    statements: [
      // The interrupts in which a contributing run, or a child of one, is too unsure to go on, until they are answered
      // or the run ends. `goal_runs.asks` is one of them.
      `CREATE TABLE goal_questions (
        run_id TEXT NOT NULL,
        interrupt_id TEXT NOT NULL,
        tenant TEXT NOT NULL,
        PRIMARY KEY (run_id, interrupt_id)
      ) $clustered`,
    ],
  },
];

/** A goal as it is stored. */
export interface GoalRow extends SubjectColumns {
  readonly goal_id: string;
  readonly run_id: string;
  readonly state: GoalState;
  readonly body: string;
  readonly version: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly stopped_at: number | null;
  readonly stalled_at: number | null;
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
  'stalled_at',
] as const satisfies readonly (keyof GoalRow)[];

/** Expects, as `goals`, that the tenant has fewer than `most` goals that are not closed. */
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
    expectation: 'goals',
  };
}

/** Expects, as `goal`, that the goal has not changed since it was read. */
export function updateGoal(row: GoalRow): Write {
  const { goal_id, tenant, version, state, body, updated_at, stopped_at, stalled_at } = row;
  return {
    sql: `UPDATE goals SET state = $1, body = $2, updated_at = $3, stopped_at = $4, stalled_at = $5,
            version = version + 1
          WHERE goal_id = $6 AND tenant = $7 AND version = $8`,
    params: [state, body, updated_at, stopped_at, stalled_at, goal_id, tenant, version],
    expect: 1,
    expectation: 'goal',
  };
}

/** A goal by its id. */
export function findGoal({ tenant, workspace }: Visibility, goalId: string): Statement {
  const found = 'SELECT * FROM goals WHERE goal_id = $1 AND tenant = $2';
  if (workspace === undefined) return sql(found, goalId, tenant);
  return sql(`${found} AND workspace = $3`, goalId, tenant, workspace);
}

/** Which goals a list shows. */
export interface GoalFilter {
  readonly state?: GoalState | undefined;
  /** Where the previous page ended. */
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

/** A position in a list that is sorted by time, latest first. */
interface Since {
  readonly at: number;
  readonly id: string;
}

/** Goals that wait for a person, the most recently escalated first. */
export function listEscalated(visibility: Visibility, before: Since | undefined, limit: number): Statement {
  return listBack('*', 'goals', `state = 'escalated'`, 'stopped_at', 'goal_id', visibility, before, limit);
}

/** Active goals that wait for a person, those that wait for the shortest time first. */
export function listStalled(visibility: Visibility, before: Since | undefined, limit: number): Statement {
  return listBack('*', 'goals', 'stalled_at IS NOT NULL', 'stalled_at', 'goal_id', visibility, before, limit);
}

/** A disputed verdict without the verdict itself. */
export type DisputedRow = Pick<GoalRunRow, (typeof DISPUTED)[number]>;

const DISPUTED = [
  'run_id',
  'goal_id',
  'workspace',
  'disputed_at',
  'disputed_by',
] as const satisfies readonly (keyof GoalRunRow)[];

/** Verdicts that somebody disputes, the most recently disputed first. */
export function listDisputed(visibility: Visibility, before: Since | undefined, limit: number): Statement {
  const columns = DISPUTED.join(', ');
  return listBack(columns, 'goal_runs', 'disputed_at IS NOT NULL', 'disputed_at', 'run_id', visibility, before, limit);
}

function listBack(
  columns: string,
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
    sql: `SELECT ${columns} FROM ${table} WHERE ${where.join(' AND ')}
          ORDER BY ${time} DESC, ${id} DESC LIMIT ${limited}`,
    params,
  };
}

/** One wording of a goal's objective. */
export interface ObjectiveRow {
  readonly goal_id: string;
  readonly version: number;
  readonly objective: string;
  readonly principal: string;
  readonly at: number;
}

/** Stores a wording. */
export function insertObjective({ goal_id, version, objective, principal, at }: ObjectiveRow): Write {
  return {
    sql: 'INSERT INTO goal_objectives (goal_id, version, objective, principal, at) VALUES ($1, $2, $3, $4, $5)',
    params: [goal_id, version, objective, principal, at],
  };
}

const OBJECTIVES_MAX = 1_000;

/** The wordings of a goal's objective, first to last. */
export function listObjectives(goalId: string): Statement {
  return sql('SELECT * FROM goal_objectives WHERE goal_id = $1 ORDER BY version LIMIT $2', goalId, OBJECTIVES_MAX);
}

/** A contributing run as it is stored. */
export interface GoalRunRow {
  readonly run_id: string;
  readonly goal_id: string;
  readonly tenant: string;
  readonly workspace: string | null;
  readonly number: number;
  readonly started_at: number;
  readonly ended_at: number | null;
  readonly asks: string | null;
  readonly judging: string | null;
  readonly judged_at: number | null;
  readonly verdict: string | null;
  readonly judge: string | null;
  readonly satisfied: number | null;
  readonly agreed: number | null;
  readonly disputed_by: string | null;
  readonly disputed_at: number | null;
  readonly awaits_person: number | null;
  readonly said: number | null;
  readonly expected: number | null;
  readonly opinion_by: string | null;
  readonly opinion_at: number | null;
}

/** Stores that a run contributes to a goal. */
export function insertGoalRun(
  row: Pick<GoalRunRow, 'run_id' | 'goal_id' | 'tenant' | 'workspace' | 'number' | 'started_at'>,
): Write {
  return {
    sql: `INSERT INTO goal_runs (run_id, goal_id, tenant, workspace, number, started_at, heeded)
          VALUES ($1, $2, $3, $4, $5, $6, 0)`,
    params: [row.run_id, row.goal_id, row.tenant, row.workspace, row.number, row.started_at],
  };
}

/** Makes the work item of a goal due, now or at a time. */
export function wakeGoal({ goal_id, tenant }: Pick<GoalRow, 'goal_id' | 'tenant'>, kind: string, at?: number): Write {
  return addOrWake({ workId: goal_id, kind, tenant, dueAt: at });
}

/** The first run that has ended and has no verdict. */
export function findUnjudged({ goal_id, tenant }: Pick<GoalRow, 'goal_id' | 'tenant'>): Statement {
  return sql(
    `SELECT * FROM goal_runs WHERE goal_id = $1 AND tenant = $2 AND judged_at IS NULL AND ended_at IS NOT NULL
     ORDER BY number LIMIT 1`,
    goal_id,
    tenant,
  );
}

/** A contributing run. */
export function findGoalRun({ tenant, runId }: RunRef): Statement {
  return sql('SELECT * FROM goal_runs WHERE run_id = $1 AND tenant = $2', runId, tenant);
}

/** Stores how far judging has come. Expects, as `goal`, that it has not progressed since `before` was read. */
export function noteJudging({ tenant, runId }: RunRef, before: string | null, judging: string): Write {
  return {
    sql: `UPDATE goal_runs SET judging = $1
          WHERE run_id = $2 AND tenant = $3 AND judged_at IS NULL AND COALESCE(judging, '') = $4`,
    params: [judging, runId, tenant, before ?? ''],
    expect: 1,
    expectation: 'goal',
  };
}

/** A verdict as it is stored. */
interface NewVerdict {
  readonly verdict: string;
  readonly judge: string;
  readonly satisfied: boolean;
  /** What the judge said, if a person decided. */
  readonly said?: boolean | undefined;
  readonly at: number;
}

/** Stores the verdict on a run. Expects, as `goal`, that there is none yet. */
export function noteVerdict({ tenant, runId }: RunRef, verdict: NewVerdict): Write {
  const { satisfied, said } = verdict;
  const opinion = said === undefined ? [null, null] : [Number(said), Number(said === satisfied)];
  return {
    sql: `UPDATE goal_runs SET verdict = $1, judge = $2, satisfied = $3, judged_at = $4, said = $5, agreed = $6,
            judging = NULL, awaits_person = NULL
          WHERE run_id = $7 AND tenant = $8 AND judged_at IS NULL`,
    params: [verdict.verdict, verdict.judge, Number(satisfied), verdict.at, ...opinion, runId, tenant],
    expect: 1,
    expectation: 'goal',
  };
}

/** How many of its latest runs the document of a goal names. */
const CONTRIBUTIONS_MAX = 1_000;

/** Runs that were judged, in the order in which they were started. */
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
