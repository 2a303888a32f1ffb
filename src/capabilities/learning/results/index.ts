import { commitOrThrow } from '../../../runtime/change.ts';
import { ensureWork, makeDueNow } from '../../../store/queue.ts';
import { Packs } from '../../ai/packs/door.ts';
import { Prompts } from '../../ai/prompts/door.ts';
import { defineCapability, optional } from '../../capability.ts';
import { Costs } from '../../operations/costs/door.ts';
import { Feedback } from '../../people/feedback/door.ts';
import { bindRoutes } from '../../request.ts';
import { Impact } from '../impact/door.ts';
import { Proposals } from '../proposals/door.ts';
import { RESULT_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { ResultService } from './service.ts';
import { resultSettings } from './settings.ts';
import { RESULTS_WORK, resultsHandler } from './work.ts';

/** Tells how applied proposals turned out, and drafts the rollback of one that made things worse. */
export const results = defineCapability({
  name: 'results',
  needs: [optional(Proposals), optional(Impact), Prompts, Packs, Costs, optional(Feedback)],
  settings: resultSettings,
  tables: RESULT_TABLES,
  build: ({ runtime }, { proposals, impact, ...needs }, { results: { everyMs } }) => {
    if (!proposals || !impact) return { work: { [RESULTS_WORK]: { handle: async () => ({}) } } };
    const service = new ResultService({ runtime }, { ...needs, proposals, impact });
    return {
      routes: bindRoutes(routes, { results: service }),
      work: { [RESULTS_WORK]: { handle: resultsHandler(runtime, proposals, service, everyMs), atOnce: 1 } },
      // At each start, because the interval may have been set or shortened since the last one.
      prepare: async () => {
        if (everyMs === undefined) return;
        const work = { workId: RESULTS_WORK, kind: RESULTS_WORK, tenant: '*', dueAt: 0 };
        await commitOrThrow(runtime.store, [ensureWork(work), makeDueNow(RESULTS_WORK)]);
      },
    };
  },
});
