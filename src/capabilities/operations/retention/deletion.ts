import type { Runtime } from '../../../runtime/runtime.ts';
import { deleteEvents, deleteRunRows } from '../../../store/delete-run.ts';
import type { Unit } from '../../../store/sql.ts';
import { releaseEventBytes, releaseRunBytes } from '../../../store/tenant-storage.ts';
import type { Host } from '../../capability.ts';
import { type EndedRun, type ExpiredRow, noteEventsLeft, noteExpired } from './records.ts';

/** What retention uses of the host. */
export interface RetentionHost extends Pick<Host, 'forgetRun'> {
  readonly runtime: Pick<Runtime, 'store' | 'clock' | 'reader' | 'hub' | 'mutex' | 'log' | 'storage'>;
}

/** Events that one transaction deletes; a longer log takes several. */
const EVENTS_PER_UNIT = 1_000;

/** Deletes runs at once, and their events as far as one transaction can bear; the sweep deletes the rest. */
export function deleteRuns(ended: readonly EndedRun[], { runtime, forgetRun }: RetentionHost): Unit {
  let eventsMax = EVENTS_PER_UNIT;
  return ended.flatMap((run) => {
    const events = run.sequence + 1;
    const fits = events <= eventsMax;
    if (fits) eventsMax -= events;
    const ref = { tenant: run.tenant, runId: run.run_id };
    const shard = runtime.storage.shardOf(run.tenant);
    return [
      noteExpired(run, fits ? 0 : events),
      ...(fits ? [releaseEventBytes(shard, run.run_id, 0), deleteEvents(run.run_id, 0)] : []),
      ...forgetRun(ref),
      releaseRunBytes(shard, run.run_id),
      ...deleteRunRows(ref),
    ];
  });
}

/** Deletes the next events of a run that is gone, from the end backwards: the rest has no gaps. */
export function deleteNextEvents({ run_id, tenant, events_left }: ExpiredRow, { runtime }: RetentionHost): Unit {
  const left = Math.max(0, events_left - EVENTS_PER_UNIT);
  return [
    releaseEventBytes(runtime.storage.shardOf(tenant), run_id, left),
    deleteEvents(run_id, left),
    noteEventsLeft(run_id, left),
  ];
}
