import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { perform } from '../../../runtime/change.ts';
import { commitAll } from '../../../runtime/command.ts';
import type { WorkResult } from '../../../runtime/executor.ts';
import { forgetEvents, forgetRun } from '../../../store/forget-run.ts';
import type { Visibility } from '../../../store/log.ts';
import { wake } from '../../../store/queue.ts';
import type { Unit } from '../../../store/sql.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import type { Runs } from '../../running/runs/door.ts';
import { storageTenant } from '../../trust/authorization/keys.ts';
import {
  type EndedRun,
  type ExpiredRow,
  findEndedBefore,
  findExpired,
  findUncleared,
  forgetExpired,
  noteEventsLeft,
  noteExpired,
  type Windows,
} from './records.ts';

export type RetentionService = ReturnType<typeof retentionService>;

/** The work item that clears away; there is one. */
export const SWEEP = 'sweep-expired-runs';

const SWEEP_EVERY_MS = 10 * 60 * 1_000;
const RUNS_AT_ONCE = 50;
/** Events that one transaction clears away; a longer log takes several. */
const EVENTS_AT_ONCE = 1_000;
/** How long it is remembered that there was a run. */
const REMEMBERED_MS = 365 * 24 * 60 * 60 * 1_000;
const REMEMBERED_AT_ONCE = 1_000;

export function retentionService(
  { runtime, settings, forget }: Host,
  { runs }: { readonly runs: Pick<Runs, 'cancel'> },
) {
  const { store, clock, reader, log } = runtime;
  const windows: Windows = { keptMs: settings.retentionMs, keptMsOf: byStorageTenant(settings.retentionOf) };
  const keptMsOf = (tenant: string): number => windows.keptMsOf.get(tenant) ?? windows.keptMs;

  return {
    /** Says that a run is not kept any more, to whoever could see it. */
    async expiry({ tenant, workspace }: Visibility, runId: string): Promise<Refusal | undefined> {
      const [row] = await store.read<ExpiredRow>(findExpired({ tenant, workspace }, runId));
      if (!row) return undefined;
      return refuse('run_expired', 'The run ended long ago and is not kept any more.', {
        expiredAt: new Date(row.expired_at).toISOString(),
        retentionBoundary: new Date(clock.now() - keptMsOf(tenant)).toISOString(),
      });
    },

    /** A bounded part of what there is to clear away, in one transaction; at once again while there is more. */
    async sweep(): Promise<WorkResult> {
      const writes = await nextBatch();
      if (writes.length > 0) return { writes, dueAgainAt: clock.now() };
      await store.reclaim();
      const dueAgainAt = clock.now() + SWEEP_EVERY_MS;
      return { writes: [forgetExpired(REMEMBERED_MS, REMEMBERED_AT_ONCE)], dueAgainAt };
    },

    /** Is done with a run before its time, ended or not. */
    async expire(caller: Caller, runId: string): Promise<Refusal | undefined> {
      const found = await reader.row(caller.subject, runId);
      if (!found) return NOT_FOUND;
      const cancelled =
        found.ended_at === null
          ? await perform(runtime, () => runs.cancel(caller, runId, 'expired'), { turn: runId })
          : found;
      if (isRefusal(cancelled)) return cancelled;
      const row = (await reader.row(caller.subject, runId)) ?? found;
      await commitAll(store, [...bury([row]), wake(SWEEP)]);
      runtime.hub.callToWork(SWEEP);
      return undefined;
    },
  };

  async function nextBatch(): Promise<Unit> {
    const [uncleared] = await store.read<ExpiredRow>(findUncleared());
    if (uncleared) return clearOn(uncleared);
    const ended = await store.read<EndedRun>(findEndedBefore(windows, RUNS_AT_ONCE));
    if (ended.length > 0) log.info({ runs: ended.length }, 'clearing away runs whose time is up');
    return bury(ended);
  }

  /** The runs are gone at once; of their logs, as much as one transaction can bear. */
  function bury(ended: readonly EndedRun[]): Unit {
    let eventsMax = EVENTS_AT_ONCE;
    return ended.flatMap((run) => {
      const events = run.sequence + 1;
      const fits = events <= eventsMax;
      if (fits) eventsMax -= events;
      const ref = { tenant: run.tenant, runId: run.run_id };
      return [
        noteExpired(run, fits ? 0 : events),
        ...(fits ? [forgetEvents(run.run_id, 0)] : []),
        ...forget(ref),
        ...forgetRun(ref),
      ];
    });
  }

  /** From the end backwards, so that what is left is a log, too. */
  function clearOn({ run_id, events_left }: ExpiredRow): Unit {
    const left = Math.max(0, events_left - EVENTS_AT_ONCE);
    return [forgetEvents(run_id, left), noteEventsLeft(run_id, left)];
  }
}

/** A tenant's test runs are kept as long as its others. */
function byStorageTenant(retentionOf: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  return new Map(
    [...retentionOf].flatMap(([tenant, ms]) => [false, true].map((isTest) => [storageTenant(tenant, isTest), ms])),
  );
}
