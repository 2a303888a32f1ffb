import { Closed, NonEmpty } from '../../../protocol/format/schema.ts';
import { ProposalImpact } from '../../../protocol/learning/impact.ts';
import { answer, route } from '../../request.ts';
import type { ImpactService } from './service.ts';

const impact = route<{ readonly impact: ImpactService }>()({
  operationId: 'getProposalImpact',
  summary: 'What applying a proposal would change: uses that get it, uses that are pinned, and runs that go through it',
  method: 'GET',
  path: '/v1/host/capstan/proposals/{proposalId}/impact',
  scope: 'proposals:read',
  params: Closed({ proposalId: NonEmpty }),
  replies: { 200: ProposalImpact },
  refusals: [404],
  handle: async ({ caller, params }, services) => answer(200, await services.impact.of(caller, params.proposalId)),
});

/** The operation that tells the blast radius of a proposal. */
export const routes = [impact];
