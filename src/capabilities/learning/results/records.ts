import { TRIAL_TAG } from '../../../protocol/running/trials.ts';
import { taggedRuns, type Visibility } from '../../../store/log.ts';
import { type Param, placeholders, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

/** The table of proposals that would take another one back. */
export const RESULT_TABLES: readonly Migration[] = [
  {
    id: 'results/0001',
    statements: [
      `CREATE TABLE proposal_rollbacks (
        tenant TEXT NOT NULL,
        proposal_id TEXT NOT NULL,
        rollback_id TEXT NOT NULL,
        PRIMARY KEY (tenant, proposal_id)
      ) $clustered`,
    ],
  },
];

/** The proposal that would take another one back. */
export function findRollback(tenant: string, proposalId: string): Statement {
  return sql('SELECT rollback_id FROM proposal_rollbacks WHERE tenant = $1 AND proposal_id = $2', tenant, proposalId);
}

/** Expects, as `rollback`, that there was none before. */
export function insertRollback(tenant: string, proposalId: string, rollbackId: string): Write {
  return {
    sql: `INSERT INTO proposal_rollbacks (tenant, proposal_id, rollback_id) VALUES ($1, $2, $3)
          ON CONFLICT (tenant, proposal_id) DO NOTHING`,
    params: [tenant, proposalId, rollbackId],
    expect: 1,
    expectation: 'rollback',
  };
}

/** A run that is compared. */
export interface ComparedRow {
  readonly run_id: string;
  readonly status: string;
}

/** Ended runs of some workflows between two ids, newest first. Ids sort by the time of the start; forks and trials are left out. */
export function runsBetween(
  { tenant, workspace }: Visibility,
  workflowIds: readonly string[],
  [from, to]: readonly [string, string],
  limit: number,
): Statement {
  const params: Param[] = [tenant, from, to, limit, ...workflowIds];
  const among = placeholders(1, workflowIds.length, 5);
  const inWorkspace = workspace === undefined ? '' : ` AND workspace = $${params.push(workspace)}`;
  return {
    sql: `SELECT run_id, status FROM runs WHERE tenant = $1 AND run_id >= $2 AND run_id < $3
            AND workflow_id IN ${among} AND ended_at IS NOT NULL${inWorkspace}
            AND NOT EXISTS (SELECT 1 FROM run_forks WHERE run_forks.run_id = runs.run_id)
            AND run_id NOT IN (${taggedRuns(TRIAL_TAG)})
          ORDER BY run_id DESC LIMIT $4`,
    params,
  };
}
