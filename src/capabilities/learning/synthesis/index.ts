import { commitOrThrow } from '../../../runtime/change.ts';
import { ensureWork, makeDueNow } from '../../../store/queue.ts';
import { Models } from '../../ai/models/door.ts';
import { Packs } from '../../ai/packs/door.ts';
import { Prompts } from '../../ai/prompts/door.ts';
import { defineCapability, optional } from '../../capability.ts';
import { Costs } from '../../operations/costs/door.ts';
import { Feedback } from '../../people/feedback/door.ts';
import { bindRoutes } from '../../request.ts';
import { Schedules } from '../../starting/schedules/door.ts';
import { Goals } from '../goals/door.ts';
import { Proposals } from '../proposals/door.ts';
import { Verifiers } from '../verifiers/door.ts';
import { forgetHabits, SYNTHESIS_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { SynthesisService } from './service.ts';
import { synthesisSettings } from './settings.ts';
import { SCAN_ALL, SCAN_TENANT, scanAllHandler, scanTenantHandler } from './work.ts';

/** Tenants that one host scans at the same time: scans are never urgent. */
const SCANS_AT_ONCE = 1;

/** Without proposals there is nothing to scan for: what is still queued ends. */
const WORK_WHEN_OFF = { [SCAN_ALL]: { handle: async () => ({}) }, [SCAN_TENANT]: { handle: async () => ({}) } };

/** Finds habits in runs and feedback, and drafts proposals that would automate them. */
export const synthesis = defineCapability({
  name: 'synthesis',
  needs: [
    optional(Proposals),
    Prompts,
    Packs,
    Schedules,
    Models,
    optional(Feedback),
    Costs,
    Verifiers,
    optional(Goals),
  ],
  settings: synthesisSettings,
  tables: SYNTHESIS_TABLES,
  build: ({ runtime }, { proposals, ...needs }, { synthesis: settings }) => {
    if (!proposals) return { work: WORK_WHEN_OFF, forgetRun: forgetHabits };
    const service = new SynthesisService({ runtime }, { ...needs, proposals }, settings);
    return {
      advertise: () => ({ agents: { proposals: { artifactKinds: service.kinds, duplicationDetection: true } } }),
      routes: bindRoutes(routes, { synthesis: service }),
      work: {
        [SCAN_ALL]: { handle: scanAllHandler(runtime, settings) },
        [SCAN_TENANT]: { handle: scanTenantHandler(runtime, service), atOnce: SCANS_AT_ONCE },
      },
      forgetRun: forgetHabits,
      // At each start, because the interval may have been set or shortened since the last one.
      prepare: async () => {
        if (settings.everyMs === undefined) return;
        const work = { workId: SCAN_ALL, kind: SCAN_ALL, tenant: '*', dueAt: 0 };
        await commitOrThrow(runtime.store, [ensureWork(work), makeDueNow(SCAN_ALL)]);
      },
    };
  },
});
