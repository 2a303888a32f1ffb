import { deleteExpiredEffects } from '../store/effects.ts';
import { deleteDeadHosts } from '../store/hosts.ts';
import { deleteExpiredIdempotencyRecords } from '../store/idempotency.ts';
import { ensureWork } from '../store/queue.ts';
import type { Write } from '../store/sql.ts';
import { mergeShards } from '../store/tenant-storage.ts';
import type { Clock } from '../system/clock.ts';
import { changeOf } from './change.ts';
import type { WorkHandler } from './work-kind.ts';

/** Kind of the work item that deletes expired rows, and its id. */
export const MAINTENANCE = 'maintenance';
const INTERVAL_MS = 10 * 60 * 1_000;
/** Rows that one pass deletes from each table, so that its transaction stays short. */
const ROWS_PER_PASS = 2_000;

/** Creates the maintenance work item; its fixed id makes it one per store, however many hosts there are. */
export function maintenanceWork(): Write {
  return ensureWork({ workId: MAINTENANCE, kind: MAINTENANCE, tenant: '*', dueAt: 0 });
}

/** Handles the maintenance item: deletes expired idempotency records, effect records and dead hosts, and adds up what those counted. */
export function maintenanceHandler(clock: Clock): WorkHandler {
  const deletions = [
    deleteExpiredIdempotencyRecords(ROWS_PER_PASS),
    deleteExpiredEffects(ROWS_PER_PASS),
    deleteDeadHosts(),
    ...mergeShards(),
  ];
  return async () => ({
    change: changeOf(undefined, deletions),
    dueAgainAt: clock.now() + INTERVAL_MS,
  });
}
