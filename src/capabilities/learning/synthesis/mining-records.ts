import type { EventType } from '../../../protocol/running/events.ts';
import type { Visibility } from '../../../store/log.ts';
import { type Param, placeholders, type Statement, sql } from '../../../store/sql.ts';
import type { ShapeRow } from './records.ts';

/** The runs that miners consider: those that the caller may see, or some of them. */
export interface RunSelection extends Visibility {
  /** Ids of runs sort by the time of their start. */
  readonly fromId?: string | undefined;
  readonly runIds?: readonly string[] | undefined;
}

/** Whether a run is among those that miners consider, as far as its id tells. */
export function isSelected({ fromId = '', runIds }: RunSelection, runId: string): boolean {
  return runId >= fromId && (runIds?.includes(runId) ?? true);
}

/** Builds a SELECT over selected runs; `$1` is the tenant. */
class CountQuery {
  readonly #params: Param[];
  readonly #where = ['runs.tenant = $1'];

  constructor({ tenant, workspace, fromId, runIds }: RunSelection) {
    this.#params = [tenant];
    if (workspace !== undefined) this.and('runs.workspace =', workspace);
    if (fromId !== undefined) this.and('runs.run_id >=', fromId);
    if (runIds) this.in('runs.run_id', runIds);
  }

  and(condition: string, value: Param): this {
    this.#where.push(`${condition} ${this.param(value)}`);
    return this;
  }

  in(column: string, values: readonly Param[]): this {
    this.#where.push(`${column} IN (${values.map((value) => this.param(value)).join(', ') || 'NULL'})`);
    return this;
  }

  param(value: Param): string {
    return `$${this.#params.push(value)}`;
  }

  statement(text: (where: string) => string): Statement {
    return { sql: text(this.#where.join(' AND ')), params: this.#params };
  }
}

/** A shape, and how many runs have it. */
export interface CountedShape extends Omit<ShapeRow, 'nodes'> {
  readonly runs: number;
}

/** Shapes by number of runs, the most frequent first. */
export function countShapes(selection: RunSelection, limit: number): Statement {
  const query = new CountQuery(selection);
  const limited = query.param(limit);
  return query.statement(
    (where) => `SELECT tenant, shape, workflow_owner, workflow_id, workflow_version, counted.runs
      FROM synthesis_shapes JOIN (
        SELECT shape, COUNT(*) AS runs FROM synthesis_runs runs WHERE ${where} AND shape IS NOT NULL GROUP BY shape
      ) AS counted USING (shape)
      WHERE synthesis_shapes.tenant = $1 ORDER BY runs DESC, shape LIMIT ${limited}`,
  );
}

/** The nodes of a shape. */
export function findShape(tenant: string, shape: string): Statement {
  return sql('SELECT nodes FROM synthesis_shapes WHERE tenant = $1 AND shape = $2', tenant, shape);
}

/** The runs with a shape, newest first. */
export function runsOfShape(selection: RunSelection, shape: string, limit: number): Statement {
  const query = new CountQuery(selection).and('shape =', shape);
  const limited = query.param(limit);
  return query.statement(
    (where) => `SELECT run_id FROM synthesis_runs runs WHERE ${where} ORDER BY run_id DESC LIMIT ${limited}`,
  );
}

/** A workflow and its inputs, and how often people started it with them. */
export interface CountedStart {
  readonly workflow_id: string;
  readonly inputs: string;
  readonly runs: number;
}

/** Workflows that people started with the same inputs often enough. */
export function countStarts(selection: RunSelection, supportMin: number, limit: number): Statement {
  const query = new CountQuery(selection);
  const [least, limited] = [query.param(supportMin), query.param(limit)];
  return query.statement(
    (where) => `SELECT workflow_id, inputs, COUNT(*) AS runs FROM synthesis_runs runs
      WHERE ${where} AND inputs IS NOT NULL GROUP BY workflow_id, inputs HAVING COUNT(*) >= ${least}
      ORDER BY runs DESC, workflow_id, inputs LIMIT ${limited}`,
  );
}

/** The runs that were started so, newest first. */
export function runsOfStart(
  selection: RunSelection,
  { workflow_id, inputs }: Pick<CountedStart, 'workflow_id' | 'inputs'>,
  limit: number,
): Statement {
  const query = new CountQuery(selection).and('runs.workflow_id =', workflow_id).and('inputs =', inputs);
  const limited = query.param(limit);
  return query.statement(
    (where) => `SELECT run_id FROM synthesis_runs runs WHERE ${where} ORDER BY run_id DESC LIMIT ${limited}`,
  );
}

/** A prompt version, and how often its output was corrected. */
export interface CountedPrompt {
  readonly template_id: string;
  readonly version: string;
  readonly corrections: number;
}

/**
 * Corrections of nodes whose prompts are known, which takes that their run was read. Corrections are few and prompts are
 * many: the cross join makes SQLite start with the former; PostgreSQL finds that out by itself.
 */
const CORRECTED = 'synthesis_corrections runs CROSS JOIN synthesis_prompts prompts';
/** A correction of a whole run counts for its prompt if the run used only one: of several nobody can tell which. */
const SAME_NODE = `prompts.tenant = runs.tenant AND prompts.run_id = runs.run_id AND (prompts.node_id = runs.node_id
  OR (runs.node_id = '' AND NOT EXISTS (SELECT 1 FROM synthesis_prompts other
    WHERE other.tenant = prompts.tenant AND other.run_id = prompts.run_id
      AND (other.template_id <> prompts.template_id OR other.node_id < prompts.node_id))))`;

/** Prompts whose output people corrected often enough. */
export function countCorrections(selection: RunSelection, supportMin: number, limit: number): Statement {
  const query = new CountQuery(selection);
  const [least, limited] = [query.param(supportMin), query.param(limit)];
  return query.statement(
    (where) => `SELECT template_id, version, COUNT(*) AS corrections FROM ${CORRECTED} WHERE ${where} AND ${SAME_NODE}
      GROUP BY template_id, version HAVING COUNT(*) >= ${least}
      ORDER BY corrections DESC, template_id, version LIMIT ${limited}`,
  );
}

/** A correction, and the node that it corrects. */
export interface CorrectedRow {
  readonly run_id: string;
  readonly workspace: string | null;
  readonly workflow_id: string;
  readonly annotation_id: string;
  readonly node_id: string;
  readonly sequence: number | null;
}

/** The corrections of the output of a prompt version, newest first. */
export function correctionsOf(
  selection: RunSelection,
  { template_id, version }: Pick<CountedPrompt, 'template_id' | 'version'>,
  limit: number,
): Statement {
  const query = new CountQuery(selection).and('template_id =', template_id).and('version =', version);
  const limited = query.param(limit);
  return query.statement(
    (where) => `SELECT annotation_id, runs.run_id, runs.workspace, runs.node_id, workflow_id, sequence FROM ${CORRECTED}
      WHERE ${where} AND ${SAME_NODE} ORDER BY annotation_id DESC LIMIT ${limited}`,
  );
}

/** A node without a prompt of the library, and how often its output was corrected. */
export interface CountedNode {
  readonly workflow_id: string;
  readonly node_id: string;
  readonly corrections: number;
}

/** Nodes that used no prompt of the library and whose output people corrected often enough. */
export function countUnprompted(selection: RunSelection, supportMin: number, limit: number): Statement {
  const query = new CountQuery(selection);
  const [least, limited] = [query.param(supportMin), query.param(limit)];
  return query.statement(
    (where) => `SELECT workflow_id, node_id, COUNT(*) AS corrections FROM synthesis_corrections runs
      WHERE ${where} AND node_id <> '' AND NOT EXISTS (SELECT 1 FROM synthesis_prompts prompts
        WHERE prompts.tenant = runs.tenant AND prompts.run_id = runs.run_id AND prompts.node_id = runs.node_id)
      GROUP BY workflow_id, node_id HAVING COUNT(*) >= ${least} ORDER BY corrections DESC, workflow_id, node_id
      LIMIT ${limited}`,
  );
}

/** The prompts that runs used, each once for a run. */
export function promptsOfRuns(tenant: string, runIds: readonly string[]): Statement {
  return sql(
    `SELECT tenant, run_id, template_id, MIN(version) AS version, MIN(node_id) AS node_id FROM synthesis_prompts
     WHERE tenant = $1 AND run_id IN ${placeholders(1, runIds.length, 2)} GROUP BY tenant, run_id, template_id`,
    tenant,
    ...runIds,
  );
}

/** A prompt and the tools used under it, and in how many runs. */
export interface CountedUse {
  readonly prompt: string;
  readonly tools: string;
  readonly runs: number;
}

const USED = `synthesis_agents agents
  JOIN synthesis_runs runs ON runs.tenant = agents.tenant AND runs.run_id = agents.run_id`;

/** Prompts under which models used the same tools often enough. */
export function countUses(selection: RunSelection, supportMin: number, limit: number): Statement {
  const query = new CountQuery(selection);
  const [least, limited] = [query.param(supportMin), query.param(limit)];
  return query.statement(
    (where) => `SELECT prompt, tools, COUNT(DISTINCT agents.run_id) AS runs FROM ${USED} WHERE ${where}
      GROUP BY prompt, tools HAVING COUNT(DISTINCT agents.run_id) >= ${least}
      ORDER BY runs DESC, prompt, tools LIMIT ${limited}`,
  );
}

/** A node at which a model used tools. */
export interface UsedRow {
  readonly run_id: string;
  readonly workflow_id: string;
  readonly node_id: string;
}

/** The runs in which these tools were used under a prompt, newest first. */
export function runsOfUse(
  selection: RunSelection,
  { prompt, tools }: Pick<CountedUse, 'prompt' | 'tools'>,
  limit: number,
): Statement {
  const query = new CountQuery(selection).and('prompt =', prompt).and('tools =', tools);
  const limited = query.param(limit);
  return query.statement(
    (where) => `SELECT agents.run_id, MIN(node_id) AS node_id, MIN(workflow_id) AS workflow_id FROM ${USED}
      WHERE ${where} GROUP BY agents.run_id ORDER BY agents.run_id DESC LIMIT ${limited}`,
  );
}

/** Events of some types of some runs after a position, run by run, oldest first. */
export function findEventsAfter(
  runIds: readonly string[],
  types: readonly EventType[],
  after: { readonly runId: string; readonly sequence: number },
  limit: number,
): Statement {
  return sql(
    `SELECT run_id, sequence, type, body, hidden FROM events
     WHERE run_id IN ${placeholders(1, runIds.length, 4)} AND type IN ${placeholders(1, types.length, runIds.length + 4)}
       AND (run_id, sequence) > ($1, $2)
     ORDER BY run_id, sequence LIMIT $3`,
    after.runId,
    after.sequence,
    limit,
    ...runIds,
    ...types,
  );
}
