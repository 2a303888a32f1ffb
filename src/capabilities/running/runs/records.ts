import type { Visibility } from '../../../store/log.ts';
import { type Param, type Statement, sql } from '../../../store/sql.ts';

/** A run that was put aside. */
export interface QuarantinedRow {
  readonly work_id: string;
  readonly quarantined_at: number;
  readonly workspace: string | null;
}

/** Lists the runs that were put aside before a position, newest first. */
export function listQuarantined(
  { tenant, workspace }: Visibility,
  before: { readonly at: number; readonly id: string } | undefined,
  limit: number,
): Statement {
  const params: Param[] = [tenant];
  const where = ['work.tenant = $1', 'quarantined_at IS NOT NULL'];
  if (workspace !== undefined) where.push(`runs.workspace = $${params.push(workspace)}`);
  if (before) where.push(`(quarantined_at, work_id) < ($${params.push(before.at)}, $${params.push(before.id)})`);
  return sql(
    `SELECT work_id, quarantined_at, runs.workspace FROM work
     JOIN runs ON runs.run_id = work.work_id AND runs.tenant = work.tenant
     WHERE ${where.join(' AND ')} ORDER BY quarantined_at DESC, work_id DESC LIMIT $${params.push(limit)}`,
    ...params,
  );
}

/** Finds a run if it was put aside. */
export function findQuarantined({ tenant }: Visibility, runId: string): Statement {
  return sql(
    'SELECT work_id FROM work WHERE work_id = $1 AND tenant = $2 AND quarantined_at IS NOT NULL',
    runId,
    tenant,
  );
}
