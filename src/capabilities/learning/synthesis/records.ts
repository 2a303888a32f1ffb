import { MANAGEMENT_WORKFLOWS } from '../../../protocol/running/management.ts';
import { TRIAL_TAG } from '../../../protocol/running/trials.ts';
import { type RunRef, taggedRuns } from '../../../store/log.ts';
import { type Param, placeholders, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

/** The tables of synthesis. */
export const SYNTHESIS_TABLES: readonly Migration[] = [
  {
    id: 'synthesis/0001',
    statements: [
      // How far the runs and the corrections of a tenant have been read.
      `CREATE TABLE synthesis_cursors (
        tenant TEXT PRIMARY KEY,
        runs_until BIGINT NOT NULL,
        corrections_until BIGINT NOT NULL
      ) $clustered`,
      // One row per ended run: its shape if it completed, and a digest of its inputs if a person started it.
      `CREATE TABLE synthesis_runs (
        tenant TEXT NOT NULL,
        run_id TEXT NOT NULL,
        workspace TEXT,
        workflow_id TEXT NOT NULL,
        shape TEXT,
        inputs TEXT,
        PRIMARY KEY (tenant, run_id)
      ) $clustered`,
      // Covering indexes: miners read the index only.
      `CREATE INDEX synthesis_runs_by_shape ON synthesis_runs (tenant, shape, run_id, workspace)
       WHERE shape IS NOT NULL`,
      `CREATE INDEX synthesis_runs_by_start ON synthesis_runs (tenant, workflow_id, inputs, run_id, workspace)
       WHERE inputs IS NOT NULL`,
      // Shapes: the nodes of a workflow version that runs completed.
      `CREATE TABLE synthesis_shapes (
        tenant TEXT NOT NULL,
        shape TEXT NOT NULL,
        workflow_owner TEXT NOT NULL,
        workflow_id TEXT NOT NULL,
        workflow_version BIGINT NOT NULL,
        nodes TEXT NOT NULL,
        PRIMARY KEY (tenant, shape)
      ) $clustered`,
      // Prompts that nodes used.
      `CREATE TABLE synthesis_prompts (
        tenant TEXT NOT NULL,
        run_id TEXT NOT NULL,
        node_id TEXT NOT NULL,
        template_id TEXT NOT NULL,
        version TEXT NOT NULL,
        PRIMARY KEY (tenant, run_id, node_id, template_id)
      ) $clustered`,
      // Nodes at which a model used tools: under which prompt, and which ones.
      `CREATE TABLE synthesis_agents (
        tenant TEXT NOT NULL,
        run_id TEXT NOT NULL,
        node_id TEXT NOT NULL,
        prompt TEXT NOT NULL,
        tools TEXT NOT NULL,
        PRIMARY KEY (tenant, run_id, node_id)
      ) $clustered`,
      'CREATE INDEX synthesis_agents_by_use ON synthesis_agents (tenant, prompt, tools, run_id)',
      // Corrections that people made to the output of nodes.
      `CREATE TABLE synthesis_corrections (
        tenant TEXT NOT NULL,
        annotation_id TEXT NOT NULL,
        run_id TEXT NOT NULL,
        workspace TEXT,
        workflow_id TEXT NOT NULL,
        node_id TEXT NOT NULL,
        PRIMARY KEY (tenant, annotation_id)
      ) $clustered`,
      'CREATE INDEX synthesis_corrections_by_run ON synthesis_corrections (run_id)',
      // Habits that were proposed: the support then, and the latest observation then.
      `CREATE TABLE synthesis_habits (
        owner TEXT NOT NULL,
        habit TEXT NOT NULL,
        support BIGINT NOT NULL,
        through TEXT NOT NULL,
        PRIMARY KEY (owner, habit)
      ) $clustered`,
    ],
  },
  {
    id: 'synthesis/0002',
    // The last proposal of a habit: a rejection of it may be for good.
    statements: ['ALTER TABLE synthesis_habits ADD COLUMN proposal_id TEXT'],
  },
  {
    id: 'synthesis/0003',
    // The event with which somebody changed something at a gate; null for annotations. A correction without a node is of
    // the whole run.
    statements: ['ALTER TABLE synthesis_corrections ADD COLUMN sequence BIGINT'],
  },
];

/** How far the runs and corrections of a tenant were read. */
export interface CursorRow {
  readonly runs_until: number;
  readonly corrections_until: number;
}

/** The cursor of a tenant. */
export function findCursor(tenant: string): Statement {
  return sql('SELECT runs_until, corrections_until FROM synthesis_cursors WHERE tenant = $1', tenant);
}

/** Moves the cursor of a tenant forward; a position behind it changes nothing. */
export function moveCursor(tenant: string, { runs_until, corrections_until }: CursorRow): Write {
  return {
    sql: `INSERT INTO synthesis_cursors (tenant, runs_until, corrections_until) VALUES ($1, $2, $3)
          ON CONFLICT (tenant) DO UPDATE SET
            runs_until = CASE WHEN excluded.runs_until > synthesis_cursors.runs_until
              THEN excluded.runs_until ELSE synthesis_cursors.runs_until END,
            corrections_until = CASE WHEN excluded.corrections_until > synthesis_cursors.corrections_until
              THEN excluded.corrections_until ELSE synthesis_cursors.corrections_until END`,
    params: [tenant, runs_until, corrections_until],
  };
}

/** A position among ended runs, in the order of their ends. */
export interface EndPosition {
  readonly endedAt: number;
  readonly runId: string;
}

/** A run that has ended and was not read yet. */
export interface UnreadRun {
  readonly run_id: string;
  readonly ended_at: number;
}

/**
 * Ended runs that were not read yet, from a position on, without management runs and trials. No NOT EXISTS, which
 * PostgreSQL turns into a join: it grows faster than PostgreSQL knows the table that it joins.
 */
export function findUnread(tenant: string, { endedAt, runId }: EndPosition, limit: number): Statement {
  return sql(
    `SELECT run_id, ended_at FROM runs WHERE tenant = $1 AND ended_at >= $2 AND (ended_at > $2 OR run_id > $3)
       AND workflow_id NOT IN (${MANAGEMENT_WORKFLOWS.map((_, index) => `$${index + 5}`).join(', ')})
       AND run_id NOT IN (${taggedRuns(TRIAL_TAG)})
       AND (SELECT known.run_id FROM synthesis_runs known WHERE known.tenant = $1 AND known.run_id = runs.run_id) IS NULL
     ORDER BY ended_at, run_id LIMIT $4`,
    tenant,
    endedAt,
    runId,
    limit,
    ...MANAGEMENT_WORKFLOWS,
  );
}

/** The rows of runs, in no order. */
export function findRuns(tenant: string, runIds: readonly string[]): Statement {
  return sql(
    `SELECT * FROM runs WHERE tenant = $1 AND run_id IN ${placeholders(1, runIds.length, 2)}`,
    tenant,
    ...runIds,
  );
}

/** How runs ended. */
export function findStatuses(tenant: string, runIds: readonly string[]): Statement {
  return sql(
    `SELECT run_id, status FROM runs WHERE tenant = $1 AND run_id IN ${placeholders(1, runIds.length, 2)}`,
    tenant,
    ...runIds,
  );
}

/** What is stored about an ended run. */
export interface MinedRun {
  readonly tenant: string;
  readonly run_id: string;
  readonly workspace: string | null;
  readonly workflow_id: string;
  readonly shape: string | null;
  readonly inputs: string | null;
}

/** The nodes of a workflow version that runs completed. */
export interface ShapeRow {
  readonly tenant: string;
  readonly shape: string;
  readonly workflow_owner: string;
  readonly workflow_id: string;
  readonly workflow_version: number;
  readonly nodes: string;
}

/** A prompt that a node used. */
export interface UsedPrompt {
  readonly tenant: string;
  readonly run_id: string;
  readonly node_id: string;
  readonly template_id: string;
  readonly version: string;
}

/** The tools that a model used at a node, and the prompt that it had. */
export interface ToolUse {
  readonly tenant: string;
  readonly run_id: string;
  readonly node_id: string;
  readonly prompt: string;
  readonly tools: string;
}

/** A correction of the output of a node, or of a whole run: then there is no node, which is stored as an empty text. */
export interface Correction {
  readonly tenant: string;
  readonly annotation_id: string;
  readonly run_id: string;
  readonly workspace: string | null;
  readonly workflow_id: string;
  readonly node_id: string;
  /** The event with which somebody changed something at a gate; null for annotations. */
  readonly sequence: number | null;
}

/** The node of a correction of a whole run. */
export const WHOLE_RUN = '';

const COLUMNS = {
  synthesis_runs: ['tenant', 'run_id', 'workspace', 'workflow_id', 'shape', 'inputs'],
  synthesis_shapes: ['tenant', 'shape', 'workflow_owner', 'workflow_id', 'workflow_version', 'nodes'],
  synthesis_prompts: ['tenant', 'run_id', 'node_id', 'template_id', 'version'],
  synthesis_agents: ['tenant', 'run_id', 'node_id', 'prompt', 'tools'],
  synthesis_corrections: ['tenant', 'annotation_id', 'run_id', 'workspace', 'workflow_id', 'node_id', 'sequence'],
} as const;

interface Rows {
  readonly synthesis_runs: MinedRun;
  readonly synthesis_shapes: ShapeRow;
  readonly synthesis_prompts: UsedPrompt;
  readonly synthesis_agents: ToolUse;
  readonly synthesis_corrections: Correction;
}

const ROWS_PER_INSERT = 100;

/** Inserts rows. Existing ones stay: another host may have read the same runs. */
export function insertRows<T extends keyof Rows>(table: T, rows: readonly Rows[T][]): Write[] {
  const columns: readonly string[] = COLUMNS[table];
  const values = rows as readonly unknown[] as readonly Record<string, Param>[];
  const writes: Write[] = [];
  for (let start = 0; start < values.length; start += ROWS_PER_INSERT) {
    const chunk = values.slice(start, start + ROWS_PER_INSERT);
    writes.push({
      sql: `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${placeholders(chunk.length, columns.length)}
            ON CONFLICT DO NOTHING`,
      params: chunk.flatMap((row) => columns.map((column) => row[column]!)),
    });
  }
  return writes;
}

/** Deletes what is stored about a run that has expired. */
export function forgetHabits({ tenant, runId }: RunRef): Write[] {
  return ['synthesis_runs', 'synthesis_prompts', 'synthesis_agents', 'synthesis_corrections'].map((table) => ({
    sql: `DELETE FROM ${table} WHERE run_id = $1 AND tenant = $2`,
    params: [runId, tenant],
  }));
}

/** A habit that was proposed: its support, and its latest observation then. */
export interface HabitRow {
  readonly support: number;
  readonly through: string;
  /** Unknown where the proposal is older than this column. */
  readonly proposal_id: string | null;
}

/** The last proposal of a habit. */
export function findHabit(owner: string, habit: string): Statement {
  return sql(
    'SELECT support, through, proposal_id FROM synthesis_habits WHERE owner = $1 AND habit = $2',
    owner,
    habit,
  );
}

/** Records that a habit is proposed. Expects (`evidence`) that nobody else proposed it since `known` was read. */
export function recordHabit(
  owner: string,
  habit: string,
  { support, through, proposal_id }: HabitRow,
  known: HabitRow | undefined,
): Write {
  return {
    sql: `INSERT INTO synthesis_habits (owner, habit, support, through, proposal_id) VALUES ($1, $2, $3, $4, $5)
          ON CONFLICT (owner, habit) DO UPDATE SET support = excluded.support, through = excluded.through,
            proposal_id = excluded.proposal_id
          WHERE synthesis_habits.through = $6`,
    params: [owner, habit, support, through, proposal_id, known?.through ?? ''],
    expect: 1,
    expectation: 'evidence',
  };
}

/** Tenants that have runs, a page at a time, sorted by name. */
export function listTenants(after: string, limit: number): Statement {
  return sql(
    `WITH RECURSIVE tenants (tenant) AS (
       SELECT MIN(tenant) FROM runs WHERE tenant > $1
       UNION ALL SELECT (SELECT MIN(tenant) FROM runs WHERE runs.tenant > tenants.tenant) FROM tenants
       WHERE tenants.tenant IS NOT NULL)
     SELECT tenant FROM tenants WHERE tenant IS NOT NULL LIMIT $2`,
    after,
    limit,
  );
}

/** The latest run of a tenant, which tells the tenant's name. */
export function latestRun(tenant: string): Statement {
  return sql('SELECT * FROM runs WHERE tenant = $1 ORDER BY run_id DESC LIMIT 1', tenant);
}
