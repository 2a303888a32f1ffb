import { commitOrThrow } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { WorkHandler } from '../../../runtime/work-kind.ts';
import { ensureWork } from '../../../store/queue.ts';
import { listTenants } from './records.ts';
import type { SynthesisService } from './service.ts';
import type { SynthesisSettings } from './settings.ts';

/** Kind and id of the work item that schedules a scan of every tenant. */
export const SCAN_ALL = 'synthesis-round';

/** Kind of the work items that scan one tenant. */
export const SCAN_TENANT = 'synthesis';

const TENANTS_PER_PAGE = 200;

/** Adds a work item for every tenant that has runs. */
export function scanAllHandler(
  { store, clock }: Pick<Runtime, 'store' | 'clock'>,
  { everyMs }: Pick<SynthesisSettings, 'everyMs'>,
): WorkHandler {
  return async () => {
    if (everyMs === undefined) return {};
    const now = clock.now();
    for (let after = ''; ; ) {
      const tenants = await store.read<{ tenant: string }>(listTenants(after, TENANTS_PER_PAGE));
      const last = tenants.at(-1);
      if (!last) return { dueAgainAt: now + everyMs };
      // A page at a time: adding an item that exists changes nothing, so this can be repeated.
      await commitOrThrow(
        store,
        tenants.map(({ tenant }) =>
          ensureWork({ workId: `${SCAN_TENANT}:${tenant}`, kind: SCAN_TENANT, tenant, dueAt: now }),
        ),
      );
      after = last.tenant;
    }
  };
}

/** Scans one tenant in the name of the host. */
export function scanTenantHandler(
  { log }: Pick<Runtime, 'log'>,
  synthesis: Pick<SynthesisService, 'scanTenant'>,
): WorkHandler {
  return async ({ tenant }) => {
    const { created, scannedRuns } = await synthesis.scanTenant(tenant);
    if (created.length > 0) log.info({ drafts: created.length, scannedRuns }, 'drafted proposals from habits');
    return {};
  };
}
