import { TRIAL_TAG } from '../../../protocol/running/trials.ts';
import { taggedRuns, type Visibility } from '../../../store/log.ts';
import { placeholders, type Statement, sql } from '../../../store/sql.ts';

/** Runs of some workflows from an id on, counted without forks and trials; ids of runs sort by the time of their start. */
export function countRunsSince(
  { tenant, workspace }: Visibility,
  workflowIds: readonly string[],
  fromId: string,
): Statement {
  const among = placeholders(1, workflowIds.length, 3);
  const counted = `SELECT workflow_id, COUNT(*) AS runs FROM runs
    WHERE tenant = $1 AND run_id >= $2 AND workflow_id IN ${among}
      AND NOT EXISTS (SELECT 1 FROM run_forks WHERE run_forks.run_id = runs.run_id)
      AND run_id NOT IN (${taggedRuns(TRIAL_TAG)})`;
  const params = [tenant, fromId, ...workflowIds];
  if (workspace === undefined) return sql(`${counted} GROUP BY workflow_id`, ...params);
  return sql(`${counted} AND workspace = $${params.length + 1} GROUP BY workflow_id`, ...params, workspace);
}
