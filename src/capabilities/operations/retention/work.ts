import { changeOf } from '../../../runtime/change.ts';
import type { WorkHandler } from '../../../runtime/work-kind.ts';
import { ensureWork, wake } from '../../../store/queue.ts';
import type { Unit } from '../../../store/sql.ts';
import { deleteNextEvents, deleteRuns, type RetentionHost } from './deletion.ts';
import {
  type EndedRun,
  type ExpiredRow,
  findEndedBefore,
  findUncleared,
  forgetExpired,
  type RetentionWindows,
} from './records.ts';

/** Kind and id of the one work item that deletes expired runs. */
export const SWEEP = 'sweep-expired-runs';

const SWEEP_EVERY_MS = 10 * 60 * 1_000;
const RUNS_PER_SWEEP = 50;
/** How long it is remembered that a run existed. */
const REMEMBERED_MS = 365 * 24 * 60 * 60 * 1_000;
const REMEMBERED_PER_SWEEP = 1_000;

/** Makes the sweep due at each start, because the retention windows may have changed. */
export function startSweep(): Unit {
  return [ensureWork({ workId: SWEEP, kind: SWEEP, tenant: '*', dueAt: 0 }), wake(SWEEP)];
}

/** Deletes a limited number of expired runs in one transaction, and is due again at once while there are more. */
export function sweepHandler(host: RetentionHost, windows: RetentionWindows): WorkHandler {
  const { store, clock, log } = host.runtime;
  return async () => {
    const batch = await nextBatch();
    if (batch.length > 0) return { change: changeOf(undefined, batch), dueAgainAt: clock.now() };
    await store.reclaim();
    return {
      change: changeOf(undefined, [forgetExpired(REMEMBERED_MS, REMEMBERED_PER_SWEEP)]),
      dueAgainAt: clock.now() + SWEEP_EVERY_MS,
    };
  };

  async function nextBatch(): Promise<Unit> {
    const [uncleared] = await store.read<ExpiredRow>(findUncleared());
    if (uncleared) return deleteNextEvents(uncleared, host);
    const ended = await store.read<EndedRun>(findEndedBefore(windows, RUNS_PER_SWEEP));
    if (ended.length > 0) log.info({ runs: ended.length }, 'deleting expired runs');
    return deleteRuns(ended, host);
  }
}
