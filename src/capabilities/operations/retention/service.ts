import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { changeOf, perform } from '../../../runtime/change.ts';
import type { Visibility } from '../../../store/log.ts';
import { wake } from '../../../store/queue.ts';
import type { Caller } from '../../request.ts';
import type { Runs } from '../../running/runs/door.ts';
import { storageTenants } from '../../storage-tenant.ts';
import { deleteRuns, type RetentionHost } from './deletion.ts';
import type { Retention } from './door.ts';
import { type ExpiredRow, findExpired, type RetentionWindows } from './records.ts';
import { SWEEP } from './work.ts';

/** Tells which runs have expired, and lets a run expire before its time. */
export class RetentionService implements Retention {
  readonly #host: RetentionHost;
  readonly #runs: Pick<Runs, 'cancel'>;
  readonly #windows: RetentionWindows;

  constructor(host: RetentionHost, runs: Pick<Runs, 'cancel'>, windows: RetentionWindows) {
    this.#host = host;
    this.#runs = runs;
    this.#windows = windows;
  }

  async expiry({ tenant, workspace }: Visibility, runId: string): Promise<Refusal | undefined> {
    const { store, clock } = this.#host.runtime;
    const [row] = await store.read<ExpiredRow>(findExpired({ tenant, workspace }, runId));
    if (!row) return undefined;
    const windowMs = this.#windows.byTenant.get(tenant) ?? this.#windows.defaultMs;
    return refuse('run_expired', 'The run has expired and was deleted.', {
      expiredAt: new Date(row.expired_at).toISOString(),
      retentionBoundary: new Date(clock.now() - windowMs).toISOString(),
    });
  }

  async expire(caller: Caller, runId: string): Promise<Refusal | undefined> {
    const { runtime } = this.#host;
    const found = await runtime.reader.row(caller.subject, runId);
    if (!found) return NOT_FOUND;
    if (found.ended_at === null) {
      const cancelled = await perform(runtime, () => this.#runs.cancel(caller, runId, 'expired'), { mutexKey: runId });
      if (isRefusal(cancelled)) return cancelled;
    }
    const deleted = await perform(runtime, async () => {
      const row = (await runtime.reader.row(caller.subject, runId)) ?? found;
      return changeOf(undefined, [...deleteRuns([row], this.#host), wake(SWEEP)], {
        announce: [() => runtime.hub.wakeWorkers(SWEEP)],
      });
    });
    return deleted;
  }
}

/** The retention windows by storage tenant: test runs of a tenant are stored as long as its others. */
export function retentionWindows(settings: {
  readonly retentionMs: number;
  readonly retentionOf: ReadonlyMap<string, number>;
}): RetentionWindows {
  const byTenant = [...settings.retentionOf].flatMap(([tenant, ms]) =>
    storageTenants(tenant).map((stored) => [stored, ms] as const),
  );
  return { defaultMs: settings.retentionMs, byTenant: new Map(byTenant) };
}
