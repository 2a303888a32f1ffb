import { isRefusal } from '../../../protocol/errors.ts';
import { Closed, NonEmpty } from '../../../protocol/format/schema.ts';
import { PreviewRequest, ProposalPreview, ProposalPreviewList } from '../../../protocol/learning/previews.ts';
import { answer, reply, route, transact } from '../../request.ts';
import type { PreviewService } from './service.ts';

const operation = route<{ readonly previews: PreviewService }>();
const ProposalParams = Closed({ proposalId: NonEmpty });

const previewProposal = operation({
  operationId: 'previewProposal',
  summary: 'Repeat the source runs of a proposal with its draft in place, and have both rated; installs nothing',
  method: 'POST',
  path: '/v1/host/capstan/proposals/{proposalId}:preview',
  scope: 'proposals:write',
  params: ProposalParams,
  body: PreviewRequest,
  replies: { 202: ProposalPreview },
  refusals: [400, 403, 404, 409],
  handle: ({ caller, params, body }, { previews }) =>
    transact(
      () => previews.create(caller, params.proposalId, body),
      (preview) => reply(202, preview),
      { isAdditive: true },
    ),
});

const listProposalPreviews = operation({
  operationId: 'listProposalPreviews',
  summary: 'The previews of a proposal, newest first',
  method: 'GET',
  path: '/v1/host/capstan/proposals/{proposalId}/previews',
  scope: 'proposals:read',
  params: ProposalParams,
  replies: { 200: ProposalPreviewList },
  refusals: [404],
  handle: async ({ caller, params }, services) => {
    const previews = await services.previews.list(caller, params.proposalId);
    return isRefusal(previews) ? previews : reply(200, { previews });
  },
});

const getProposalPreview = operation({
  operationId: 'getProposalPreview',
  summary: 'A preview: its pairs as far as they have come, and the result in words',
  method: 'GET',
  path: '/v1/host/capstan/previews/{previewId}',
  scope: 'proposals:read',
  params: Closed({ previewId: NonEmpty }),
  replies: { 200: ProposalPreview },
  refusals: [404],
  handle: async ({ caller, params }, { previews }) => answer(200, await previews.find(caller, params.previewId)),
});

/** The operations on previews. */
export const routes = [previewProposal, listProposalPreviews, getProposalPreview];
