import { postpone } from '../../../runtime/work-kind.ts';
import { deleteDefinitionOf } from '../../../store/definitions.ts';
import type { RunRef } from '../../../store/log.ts';
import { defineCapability, optional } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { Audit } from '../../trust/audit/door.ts';
import { Proposals } from '../proposals/door.ts';
import { Verifiers } from '../verifiers/door.ts';
import { Rater } from './rating.ts';
import { announcePreview, wakePreview } from './reactions.ts';
import { PREVIEW_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { previewSeams } from './seams.ts';
import { PreviewService } from './service.ts';
import { PreviewStarter } from './start.ts';
import { PREVIEW_WORK, PreviewWorker } from './work.ts';

/** Previews that one host works on at the same time: they are never urgent. */
const PREVIEWS_AT_ONCE = 2;

/** Shows what a draft would have done, before anybody decides on it: its source runs again, with the draft in place. */
export const previews = defineCapability({
  name: 'previews',
  needs: [optional(Proposals), Verifiers, Audit],
  tables: PREVIEW_TABLES,
  build: (host, { proposals, verifiers, audit }) => {
    const { runtime } = host;
    const forgetRun = (run: RunRef) => [deleteDefinitionOf(run, 'preview')];
    if (!proposals) return { work: { [PREVIEW_WORK]: { handle: postpone(runtime.clock) } }, forgetRun };
    const service = new PreviewService(host, { proposals, verifiers, audit });
    const parts = { starter: new PreviewStarter(host), rater: new Rater(verifiers), verifiers };
    return {
      routes: bindRoutes(routes, { previews: service }),
      work: { [PREVIEW_WORK]: { handle: new PreviewWorker(runtime, parts).handle, atOnce: PREVIEWS_AT_ONCE } },
      reactions: [wakePreview],
      onAppend: [announcePreview(runtime.hub)],
      previewSeams: previewSeams(runtime),
      forgetRun,
    };
  },
});
