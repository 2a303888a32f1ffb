import type { RunRef } from './log.ts';
import type { Write } from './sql.ts';

/** The run and what stands beside its log. Without its row nobody can read the log any more either. */
export function forgetRun({ tenant, runId }: RunRef): Write[] {
  return ['runs', 'run_tags', 'effects', 'run_trees'].map((table) => ({
    sql: `DELETE FROM ${table} WHERE run_id = $1 AND tenant = $2`,
    params: [runId, tenant],
  }));
}

/** The events of a run from a sequence on. Only for runs whose row is gone. */
export function forgetEvents(runId: string, fromSequence: number): Write {
  return { sql: 'DELETE FROM events WHERE run_id = $1 AND sequence >= $2', params: [runId, fromSequence] };
}
