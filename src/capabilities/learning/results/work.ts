import type { Runtime } from '../../../runtime/runtime.ts';
import type { WorkHandler } from '../../../runtime/work-kind.ts';
import type { Proposals } from '../proposals/door.ts';
import { type ResultService, WINDOW_MS_MAX } from './service.ts';

/** Kind and id of the work item that looks at what was applied lately. */
export const RESULTS_WORK = 'proposal-results';

const ARTIFACTS_PER_PAGE = 100;

/** Looks at everything that was applied lately, and drafts rollbacks of what made things worse. */
export function resultsHandler(
  { clock, log }: Pick<Runtime, 'clock' | 'log'>,
  proposals: Pick<Proposals, 'installedSince'>,
  results: Pick<ResultService, 'rollBackIfWorse'>,
  everyMs: number | undefined,
): WorkHandler {
  return async () => {
    if (everyMs === undefined) return {};
    const now = clock.now();
    for (let after = ''; ; ) {
      const page = await proposals.installedSince(now - WINDOW_MS_MAX, after, ARTIFACTS_PER_PAGE);
      for (const installed of page) {
        if (await results.rollBackIfWorse(installed)) {
          log.info(
            { proposalId: installed.proposal_id },
            'drafted a rollback: results got worse after the proposal was applied',
          );
        }
      }
      const last = page.at(-1);
      if (!last || page.length < ARTIFACTS_PER_PAGE) return { dueAgainAt: now + everyMs };
      after = last.ref;
    }
  };
}
