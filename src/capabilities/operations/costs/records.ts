import type { ProviderUsage } from '../../../protocol/ai/models.ts';
import type { RunRef, Visibility } from '../../../store/log.ts';
import { type Param, placeholders, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

/** What the runs used, by model. Money is counted in billionths of a dollar, so that sums are exact. */
export const COST_TABLES: readonly Migration[] = [
  {
    id: 'costs/0001',
    statements: [
      `CREATE TABLE run_costs (
        tenant TEXT NOT NULL,
        run_id TEXT NOT NULL,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        workspace TEXT,
        workflow_id TEXT NOT NULL,
        calls BIGINT NOT NULL,
        input_tokens BIGINT NOT NULL,
        output_tokens BIGINT NOT NULL,
        nano_usd BIGINT NOT NULL,
        unpriced BIGINT NOT NULL,
        PRIMARY KEY (tenant, run_id, provider, model)
      ) $clustered`,
    ],
  },
];

const NANO = 1_000_000_000;
const SUMMED = ['calls', 'input_tokens', 'output_tokens', 'nano_usd', 'unpriced'] as const;

/** What was used, added up. */
export type CostFigures = Readonly<Record<(typeof SUMMED)[number], number>>;

/** Whose call it was. */
interface Spender extends RunRef {
  readonly workspace: string | undefined;
  readonly workflowId: string;
}

/** Counts one model call. */
export function countCall({ tenant, runId, workspace, workflowId }: Spender, usage: ProviderUsage): Write {
  const { provider, model, inputTokens, outputTokens, costEstimateUsd } = usage;
  const spent = costEstimateUsd === undefined ? [0, 1] : [Math.round(costEstimateUsd * NANO), 0];
  return {
    sql: `INSERT INTO run_costs (tenant, run_id, provider, model, workspace, workflow_id, ${SUMMED.join(', ')})
          VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8, $9, $10)
          ON CONFLICT (tenant, run_id, provider, model) DO UPDATE
            SET ${SUMMED.map((name) => `${name} = run_costs.${name} + excluded.${name}`).join(', ')}`,
    params: [tenant, runId, provider, model, workspace ?? null, workflowId, inputTokens, outputTokens, ...spent],
  };
}

/** What single runs used. */
export function costsOf(tenant: string, runIds: readonly string[]): Statement {
  return sql(
    `SELECT * FROM run_costs WHERE tenant = $1 AND run_id IN ${placeholders(1, runIds.length, 2)}`,
    tenant,
    ...runIds,
  );
}

/** A row of what a run used of a model. */
export interface CostRow extends CostFigures {
  readonly run_id: string;
  readonly provider: string;
  readonly model: string;
}

/** Which runs are added up: those of a range of ids, which sort by time. */
interface CountedRuns extends Visibility {
  readonly workflowId?: string | undefined;
  readonly from: string;
  readonly before: string;
}

/** Adds up what runs used, by some columns, the costliest first. */
export function sumCosts(counted: CountedRuns, by: readonly ('workflow_id' | 'provider' | 'model')[]): Statement {
  const params: Param[] = [counted.tenant, counted.from, counted.before];
  const where = ['tenant = $1 AND run_id >= $2 AND run_id < $3'];
  if (counted.workspace !== undefined) where.push(`workspace = $${params.push(counted.workspace)}`);
  if (counted.workflowId !== undefined) where.push(`workflow_id = $${params.push(counted.workflowId)}`);
  const sums = SUMMED.map((name) => `CAST(COALESCE(SUM(${name}), 0) AS BIGINT) AS ${name}`);
  const groups = by.length === 0 ? '' : `GROUP BY ${by.join(', ')}`;
  return {
    sql: `SELECT ${[...by, ...sums].join(', ')}, COUNT(DISTINCT run_id) AS runs FROM run_costs
          WHERE ${where.join(' AND ')} ${groups}
          ORDER BY SUM(nano_usd) DESC, SUM(input_tokens) DESC LIMIT $${params.push(SHOWN_MAX)}`,
    params,
  };
}

/** Workflows and models that a summary has at most. */
const SHOWN_MAX = 50;

/** Dollars of billionths. */
export function dollars(nanoUsd: number): number {
  return Number(nanoUsd) / NANO;
}

/** Deletes what a run used. */
export function deleteCosts({ tenant, runId }: RunRef): Write {
  return { sql: 'DELETE FROM run_costs WHERE tenant = $1 AND run_id = $2', params: [tenant, runId] };
}
