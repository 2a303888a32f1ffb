import { Models } from '../../ai/models/door.ts';
import { defineCapability, optional } from '../../capability.ts';
import { Costs } from '../../operations/costs/door.ts';
import { Feedback } from '../../people/feedback/door.ts';
import { bindRoutes } from '../../request.ts';
import { Runs } from '../../running/runs/door.ts';
import { Audit } from '../../trust/audit/door.ts';
import { Verifiers } from './door.ts';
import { VERIFIER_NODES } from './nodes.ts';
import { announceVerdict, wakeWaitingFor } from './reactions.ts';
import { deleteJudgingRun, VERIFIER_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { VerifierService } from './service.ts';
import { verifierSettings } from './settings.ts';

/** Judges whether work is good enough: by expressions, a schema, a checklist, a workflow or a model. */
export const verifiers = defineCapability({
  name: 'verifiers',
  provides: Verifiers,
  needs: [Audit, Costs, Models, Runs, optional(Feedback)],
  settings: verifierSettings,
  tables: VERIFIER_TABLES,
  nodes: () => VERIFIER_NODES,
  build: (host, needs, { judgeModel }) => {
    const service = new VerifierService(host, { ...needs, judgeModel });
    return {
      service,
      routes: bindRoutes(routes, { verifiers: service }),
      seams: { verifiers: service.seam },
      reactions: [wakeWaitingFor],
      onAppend: [announceVerdict(host.runtime.hub)],
      forgetRun: (run) => [deleteJudgingRun(run)],
    };
  },
});
