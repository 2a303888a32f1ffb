import { Type } from 'typebox';
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import { memberText, repeatedKey } from '../../../protocol/format/json-text.ts';
import { Closed, NonEmpty } from '../../../protocol/format/schema.ts';
import {
  AppliedProposal,
  PendingProposal,
  Proposal,
  ProposalList,
  RejectProposalRequest,
  ReviseProposalRequest,
} from '../../../protocol/learning/proposals.ts';
import { ListQuery, pageOf, pageRequest } from '../../page.ts';
import { type Answer, type Reply, reply, route } from '../../request.ts';
import type { Applied } from './activation.ts';
import { proposalText } from './document.ts';
import type { ProposalRow } from './records.ts';
import type { ProposalService } from './service.ts';

interface Services {
  readonly proposals: ProposalService;
}
const operation = route<Services>();
const Optional = Type.Optional;

/** Where they are, and where the protocol has them until they are final. */
const at = (rest: string) => ({ path: `/v1/proposals${rest}`, alsoAt: [`/v1/host/sample/proposals${rest}`] });

/** One page has them all, in nearly every tenant. */
const PAGE = '200';
export const ProposalParams = Closed({ proposalId: NonEmpty });

const list = operation({
  operationId: 'listProposals',
  summary: 'Proposals, newest first',
  method: 'GET',
  ...at(''),
  scope: 'proposals:read',
  query: ListQuery({ state: Optional(Type.String()), kind: Optional(Type.String()) }),
  replies: { 200: ProposalList },
  refusals: [400],
  handle: async ({ caller, query }, { proposals }) => {
    const { state, kind, limit = PAGE } = query;
    const page = pageRequest({ ...query, limit });
    if (isRefusal(page)) return page;
    const filter = { state, kind, before: page.after };
    const rows = await proposals.list(caller.subject, filter, page.limit + 1);
    const { items, nextCursor } = pageOf(rows, page, proposalText, ({ proposal_id }) => proposal_id);
    const more = nextCursor === undefined ? '' : `,"nextCursor":${JSON.stringify(nextCursor)}`;
    return { status: 200, text: `{"proposals":[${items.join(',')}]${more}}` };
  },
});

const get = operation({
  operationId: 'getProposal',
  summary: 'A proposal, with what it proposes to the letter',
  method: 'GET',
  ...at('/{proposalId}'),
  scope: 'proposals:read',
  params: ProposalParams,
  replies: { 200: Proposal },
  refusals: [404],
  handle: async ({ caller, params }, { proposals }) => shown(await proposals.find(caller.subject, params.proposalId)),
});

const revise = operation({
  operationId: 'reviseProposal',
  summary: 'Change what is proposed; nothing is put into use, and a gate that is open closes',
  method: 'PATCH',
  ...at('/{proposalId}'),
  scope: 'proposals:write',
  params: ProposalParams,
  body: ReviseProposalRequest,
  replies: { 200: Proposal },
  refusals: [400, 404, 409, 422],
  handle: async (request, { proposals }) => {
    const { title, rationale, note } = request.body;
    const artifactText = request.body.artifact && memberText(request.bodyText, 'artifact');
    const ambiguous = refuseRepeated(artifactText);
    if (ambiguous) return ambiguous;
    const revision = { artifactText, title, rationale, note };
    return shown(
      await proposals.revise(request.caller, request.params.proposalId, revision, (row) =>
        request.remember(document(row)),
      ),
    );
  },
});

/** Whoever reads it must not be shown another thing than what is installed. */
function refuseRepeated(text: string | undefined): Refusal | undefined {
  const path = text === undefined ? undefined : repeatedKey(text);
  if (path === undefined) return undefined;
  return refuse('validation_error', 'A key stands twice in one object of the artifact.', { field: `artifact${path}` });
}

const apply = operation({
  operationId: 'applyProposal',
  summary: 'Put what is proposed into use, or ask those who have to agree',
  method: 'POST',
  ...at('/{proposalId}/apply'),
  scope: 'proposals:activate',
  params: ProposalParams,
  body: Type.Object({}),
  bodyOptional: true,
  replies: { 200: AppliedProposal, 202: PendingProposal },
  refusals: [403, 404, 409, 422],
  handle: async (request, { proposals }) => {
    const outcome = await proposals.apply(request.caller, request.params.proposalId, (applied) =>
      request.remember(appliedReply(applied)),
    );
    return isRefusal(outcome) ? outcome : appliedReply(outcome);
  },
});

function appliedReply(applied: Applied): Reply {
  if ('installedArtifactRef' in applied) return reply(200, applied);
  return reply(202, { ...applied, activation: 'approval-gate' });
}

const reject = operation({
  operationId: 'rejectProposal',
  summary: 'Turn a proposal down; the same evidence gives no other',
  method: 'POST',
  ...at('/{proposalId}/reject'),
  scope: 'proposals:write',
  params: ProposalParams,
  body: RejectProposalRequest,
  bodyOptional: true,
  replies: { 200: Proposal },
  refusals: [400, 404, 409],
  handle: async (request, { proposals }) => {
    const { reason, note } = request.body ?? {};
    return shown(
      await proposals.reject(request.caller, request.params.proposalId, reason ?? note, (row) =>
        request.remember(document(row)),
      ),
    );
  },
});

const archive = operation({
  operationId: 'archiveProposal',
  summary: 'Put a proposal away; what it installed must be uninstalled first',
  method: 'DELETE',
  ...at('/{proposalId}'),
  scope: 'proposals:write',
  params: ProposalParams,
  replies: { 200: Proposal },
  refusals: [404, 409],
  handle: async (request, { proposals }) =>
    shown(await proposals.archive(request.caller, request.params.proposalId, (row) => request.remember(document(row)))),
});

function document(row: ProposalRow): Reply {
  return { status: 200, text: proposalText(row) };
}

function shown(outcome: ProposalRow | Refusal): Answer {
  return isRefusal(outcome) ? outcome : document(outcome);
}

export const routes = [list, get, revise, apply, reject, archive];
