import { forgetEffects } from '../store/effects.ts';
import { forgetAnswers } from '../store/idempotency.ts';
import { ensureWork, forgetDeadHosts } from '../store/queue.ts';
import type { Write } from '../store/sql.ts';
import type { Clock } from '../system/clock.ts';
import type { WorkHandler } from './executor.ts';

export const MAINTENANCE = 'maintenance';
const EVERY_MS = 10 * 60 * 1_000;
const ROWS_AT_ONCE = 2_000;

/** There is one, whatever the number of hosts. */
export function maintenanceWork(): Write {
  return ensureWork({ workId: MAINTENANCE, kind: MAINTENANCE, tenant: '*', dueAt: 0 });
}

/** Forgets what has served its time, a bounded part at a time. */
export function maintenanceHandler(clock: Clock): WorkHandler {
  return async () => ({
    writes: [forgetAnswers(ROWS_AT_ONCE), forgetEffects(ROWS_AT_ONCE), forgetDeadHosts()],
    dueAgainAt: clock.now() + EVERY_MS,
  });
}
