import type { RunRef } from './log.ts';
import type { Write } from './sql.ts';

/**
 * Deletes a run's row, tags, effects and descendant count. Its events become unreadable at once, because reading them
 * requires the row, and are deleted in batches afterwards.
 */
export function deleteRunRows({ tenant, runId }: RunRef): Write[] {
  return ['runs', 'run_tags', 'effects', 'run_trees', 'run_forks'].map((table) => ({
    sql: `DELETE FROM ${table} WHERE run_id = $1 AND tenant = $2`,
    params: [runId, tenant],
  }));
}

/** Deletes a run's events from a sequence on, one batch of retention. Only for runs whose row is already gone. */
export function deleteEvents(runId: string, fromSequence: number): Write {
  return { sql: 'DELETE FROM events WHERE run_id = $1 AND sequence >= $2', params: [runId, fromSequence] };
}
