import type { LegacyCapability as Capability } from '../../legacy.ts';
import { VERIFIER_NODES } from './nodes.ts';
import { tellWaiting, wakeWaitingFor } from './react.ts';
import { forgetJudgingRun, VERIFIER_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { type VerifierNeeds, type VerifierService, verifierService } from './service.ts';

/** Who says whether something is good enough: by expressions, a schema, a checklist, a workflow or a model. */
export const verifiers: Capability<'verifiers', VerifierService> = {
  name: 'verifiers',
  migrations: VERIFIER_TABLES,
  nodes: () => VERIFIER_NODES,
  service: (host, services: VerifierNeeds) => {
    tellWaiting(host.runtime.hub);
    return verifierService(host, services);
  },
  routes,
  seams: (_host, { seam }) => ({ verifiers: seam }),
  reactions: () => [wakeWaitingFor],
  forget: (run) => [forgetJudgingRun(run)],
};
