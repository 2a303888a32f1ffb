import { ARTIFACT_KINDS } from '../../../protocol/learning/proposals.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { InboxSources } from '../../people/inbox/door.ts';
import { AnswerDeciders, InterruptLinks } from '../../people/interrupts/door.ts';
import { GATE_TIMEOUT } from './activation.ts';
import { PROPOSAL_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { type ProposalService, proposalService } from './service.ts';
import { sideRoutes } from './side-routes.ts';

/** What agents learn from runs stays without effect until a person applies it. */
export const proposals: Capability<'proposals', ProposalService> = {
  name: 'proposals',
  advertise: ({ proposals: { activation } }) => ({
    agents: { proposals: { artifactKinds: [...ARTIFACT_KINDS], activation } },
  }),
  migrations: PROPOSAL_TABLES,
  service: proposalService,
  routes: [...routes, ...sideRoutes],
  extensions: (_host, service) => [
    AnswerDeciders.of(service.answerDecider),
    InboxSources.of(...service.waiting),
    InterruptLinks.of(async (from, runIds) => {
      const proposals = await service.ofRuns(from, runIds);
      return new Map(
        [...proposals].map(([runId, proposalId]) => [runId, { link: `/console/proposals/${proposalId}`, proposalId }]),
      );
    }),
  ],
  work: (_host, service) => ({
    [GATE_TIMEOUT]: {
      handle: async ({ tenant, payload: runId }) => ({
        writes: [],
        dueAgainAt: await service.expireGate(tenant, runId),
      }),
    },
  }),
};
