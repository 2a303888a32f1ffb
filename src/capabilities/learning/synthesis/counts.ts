import type { Visibility } from '../../../store/log.ts';
import { type Param, type Statement, sql } from '../../../store/sql.ts';
import type { ShapeRow } from './records.ts';

/** Which runs count: those that somebody may see, and of these perhaps only some. */
export interface Among extends Visibility {
  /** Ids of runs sort by the time of their start. */
  readonly fromId?: string | undefined;
  readonly runIds?: readonly string[] | undefined;
}

/** A SELECT of what runs have in common, from those that count; `$1` is the tenant. */
class Counting {
  readonly #params: Param[];
  readonly #where = ['runs.tenant = $1'];

  constructor({ tenant, workspace, fromId, runIds }: Among) {
    this.#params = [tenant];
    if (workspace !== undefined) this.and('runs.workspace =', workspace);
    if (fromId !== undefined) this.and('runs.run_id >=', fromId);
    if (runIds) this.among('runs.run_id', runIds);
  }

  and(condition: string, value: Param): this {
    this.#where.push(`${condition} ${this.place(value)}`);
    return this;
  }

  among(column: string, values: readonly Param[]): this {
    this.#where.push(`${column} IN (${values.map((value) => this.place(value)).join(', ') || 'NULL'})`);
    return this;
  }

  place(value: Param): string {
    return `$${this.#params.push(value)}`;
  }

  statement(text: (where: string) => string): Statement {
    return { sql: text(this.#where.join(' AND ')), params: this.#params };
  }
}

export interface CountedShape extends Omit<ShapeRow, 'nodes'> {
  readonly runs: number;
}

/** What runs did, what most of them did first. */
export function countShapes(among: Among, limit: number): Statement {
  const counting = new Counting(among);
  const limited = counting.place(limit);
  return counting.statement(
    (where) => `SELECT tenant, shape, workflow_owner, workflow_id, workflow_version, counted.runs
      FROM synthesis_shapes JOIN (
        SELECT shape, COUNT(*) AS runs FROM synthesis_runs runs WHERE ${where} AND shape IS NOT NULL GROUP BY shape
      ) AS counted USING (shape)
      WHERE synthesis_shapes.tenant = $1 ORDER BY runs DESC, shape LIMIT ${limited}`,
  );
}

/** The nodes of a shape, which may be many. */
export function findShape(tenant: string, shape: string): Statement {
  return sql('SELECT nodes FROM synthesis_shapes WHERE tenant = $1 AND shape = $2', tenant, shape);
}

/** Newest first. */
export function runsOfShape(among: Among, shape: string, limit: number): Statement {
  const counting = new Counting(among).and('shape =', shape);
  const limited = counting.place(limit);
  return counting.statement(
    (where) => `SELECT run_id FROM synthesis_runs runs WHERE ${where} ORDER BY run_id DESC LIMIT ${limited}`,
  );
}

export interface CountedStart {
  readonly workflow_id: string;
  readonly inputs: string;
  readonly runs: number;
}

/** What people have started with the same inputs often enough. */
export function countStarts(among: Among, supportMin: number, limit: number): Statement {
  const counting = new Counting(among);
  const [least, limited] = [counting.place(supportMin), counting.place(limit)];
  return counting.statement(
    (where) => `SELECT workflow_id, inputs, COUNT(*) AS runs FROM synthesis_runs runs
      WHERE ${where} AND inputs IS NOT NULL GROUP BY workflow_id, inputs HAVING COUNT(*) >= ${least}
      ORDER BY runs DESC, workflow_id, inputs LIMIT ${limited}`,
  );
}

export function runsOfStart(
  among: Among,
  { workflow_id, inputs }: Pick<CountedStart, 'workflow_id' | 'inputs'>,
  limit: number,
): Statement {
  const counting = new Counting(among).and('runs.workflow_id =', workflow_id).and('inputs =', inputs);
  const limited = counting.place(limit);
  return counting.statement(
    (where) => `SELECT run_id FROM synthesis_runs runs WHERE ${where} ORDER BY run_id DESC LIMIT ${limited}`,
  );
}

export interface CountedPrompt {
  readonly template_id: string;
  readonly version: string;
  readonly corrections: number;
}

/**
 * Only of runs that have been read is it known which prompts their nodes were given. Corrections are few and prompts are
 * many: a cross join tells SQLite to begin with the former, and PostgreSQL finds that out by itself.
 */
const CORRECTED = 'synthesis_corrections runs CROSS JOIN synthesis_prompts prompts';
const SAME_NODE = 'prompts.tenant = runs.tenant AND prompts.run_id = runs.run_id AND prompts.node_id = runs.node_id';

/** Prompts whose answers people have corrected often enough. */
export function countCorrections(among: Among, supportMin: number, limit: number): Statement {
  const counting = new Counting(among);
  const [least, limited] = [counting.place(supportMin), counting.place(limit)];
  return counting.statement(
    (where) => `SELECT template_id, version, COUNT(*) AS corrections FROM ${CORRECTED} WHERE ${where} AND ${SAME_NODE}
      GROUP BY template_id, version HAVING COUNT(*) >= ${least}
      ORDER BY corrections DESC, template_id, version LIMIT ${limited}`,
  );
}

export interface CorrectedRow {
  readonly run_id: string;
  readonly workspace: string | null;
  readonly workflow_id: string;
  readonly annotation_id: string;
  readonly node_id: string;
}

/** Newest first. */
export function correctionsOf(
  among: Among,
  { template_id, version }: Pick<CountedPrompt, 'template_id' | 'version'>,
  limit: number,
): Statement {
  const counting = new Counting(among).and('template_id =', template_id).and('version =', version);
  const limited = counting.place(limit);
  return counting.statement(
    (where) => `SELECT annotation_id, runs.run_id, runs.workspace, runs.node_id, workflow_id FROM ${CORRECTED}
      WHERE ${where} AND ${SAME_NODE} ORDER BY annotation_id DESC LIMIT ${limited}`,
  );
}

export interface CountedUse {
  readonly prompt: string;
  readonly tools: string;
  readonly runs: number;
}

const USED = `synthesis_agents agents
  JOIN synthesis_runs runs ON runs.tenant = agents.tenant AND runs.run_id = agents.run_id`;

/** Prompts under which models have used the same tools often enough. */
export function countUses(among: Among, supportMin: number, limit: number): Statement {
  const counting = new Counting(among);
  const [least, limited] = [counting.place(supportMin), counting.place(limit)];
  return counting.statement(
    (where) => `SELECT prompt, tools, COUNT(DISTINCT agents.run_id) AS runs FROM ${USED} WHERE ${where}
      GROUP BY prompt, tools HAVING COUNT(DISTINCT agents.run_id) >= ${least}
      ORDER BY runs DESC, prompt, tools LIMIT ${limited}`,
  );
}

export interface UsedRow {
  readonly run_id: string;
  readonly workflow_id: string;
  readonly node_id: string;
}

export function runsOfUse(
  among: Among,
  { prompt, tools }: Pick<CountedUse, 'prompt' | 'tools'>,
  limit: number,
): Statement {
  const counting = new Counting(among).and('prompt =', prompt).and('tools =', tools);
  const limited = counting.place(limit);
  return counting.statement(
    (where) => `SELECT agents.run_id, MIN(node_id) AS node_id, MIN(workflow_id) AS workflow_id FROM ${USED}
      WHERE ${where} GROUP BY agents.run_id ORDER BY agents.run_id DESC LIMIT ${limited}`,
  );
}
