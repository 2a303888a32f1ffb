import { Closed, NonEmpty } from '../../../protocol/format/schema.ts';
import { ProposalEffect } from '../../../protocol/learning/results.ts';
import { answer, route } from '../../request.ts';
import type { ResultService } from './service.ts';

const getProposalEffect = route<{ readonly results: ResultService }>()({
  operationId: 'getProposalEffect',
  summary: 'What has changed since a proposal was applied: failures, corrections, ratings and cost, before and after',
  method: 'GET',
  path: '/v1/host/capstan/proposals/{proposalId}/effect',
  scope: 'proposals:read',
  params: Closed({ proposalId: NonEmpty }),
  replies: { 200: ProposalEffect },
  refusals: [404, 409],
  handle: async ({ caller, params }, { results }) => answer(200, await results.effectOf(caller, params.proposalId)),
});

/** The operation that tells how an applied proposal turned out. */
export const routes = [getProposalEffect];
