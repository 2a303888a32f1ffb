import { Type } from 'typebox';
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import { findDuplicateKey, memberText } from '../../../protocol/format/json-text.ts';
import { Closed, NonEmpty } from '../../../protocol/format/schema.ts';
import {
  AppliedProposal,
  ApplyProposalRequest,
  PendingProposal,
  Proposal,
  ProposalList,
  RejectProposalRequest,
  ReviseProposalRequest,
} from '../../../protocol/learning/proposals.ts';
import { CONSOLE_HEADER } from '../../../protocol/operations/console-header.ts';
import { ListQuery, pageRequest, readPage } from '../../page.ts';
import { type Caller, type Reply, reply, route, type Transaction, transact } from '../../request.ts';
import type { AppliedProposal as Applied } from './activation.ts';
import { proposalText } from './document.ts';
import { entityTagOf } from './named-artifact.ts';
import type { ProposalRow } from './records.ts';
import type { ProposalService } from './service.ts';

interface Services {
  readonly proposals: ProposalService;
}
const operation = route<Services>();
const Optional = Type.Optional;

/** The path, and the one under which the protocol has proposals while they are a draft of it. */
const at = (rest: string) => ({ path: `/v1/proposals${rest}`, alsoAt: [`/v1/host/sample/proposals${rest}`] });

/** Large enough for all proposals of nearly every tenant. */
const PAGE = '200';

/** The parameters of operations on one proposal. */
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
    const { items: shown, nextCursor } = await readPage(page, {
      read: (before, rows) => proposals.list(caller.subject, { state, kind, before }, rows),
      show: (row) => row,
      positionOf: ({ proposal_id }) => proposal_id,
    });
    const more = nextCursor === undefined ? '' : `,"nextCursor":${JSON.stringify(nextCursor)}`;
    const text = `{"proposals":[${shown.map(proposalText).join(',')}]${more}}`;
    return shownTo(caller, shown, proposals, { status: 200, text });
  },
});

const get = operation({
  operationId: 'getProposal',
  summary: 'A proposal with its exact artifact',
  method: 'GET',
  ...at('/{proposalId}'),
  scope: 'proposals:read',
  params: ProposalParams,
  replies: { 200: Proposal },
  refusals: [404],
  handle: async ({ caller, params }, { proposals }) => {
    const row = await proposals.find(caller.subject, params.proposalId);
    if (isRefusal(row)) return row;
    return shownTo(caller, [row], proposals, documentReply(row));
  },
});

/** A reply that shows proposals; what the caller has seen of them is stored before it is sent. */
export function shownTo(
  caller: Caller,
  rows: readonly ProposalRow[],
  { views }: Pick<ProposalService, 'views'>,
  shown: Reply,
): Transaction {
  return transact(
    () => views.note(caller, rows),
    () => shown,
    { isAdditive: true },
  );
}

const revise = operation({
  operationId: 'reviseProposal',
  summary: 'Revise a proposal; nothing is installed, and an open gate is closed',
  method: 'PATCH',
  ...at('/{proposalId}'),
  scope: 'proposals:write',
  params: ProposalParams,
  body: ReviseProposalRequest,
  replies: { 200: Proposal },
  refusals: [400, 404, 409, 422],
  handle: ({ caller, params, body, bodyText }, { proposals }) => {
    const { title, rationale, note } = body;
    const artifactText = body.artifact && memberText(bodyText, 'artifact');
    const revision = { artifactText, title, rationale, note };
    return (
      refuseRepeatedKey(artifactText) ??
      transact(() => proposals.revise(caller, params.proposalId, revision), documentReply)
    );
  },
});

/** Parsers disagree about repeated keys, so a reader could be shown something else than what is installed. */
function refuseRepeatedKey(text: string | undefined): Refusal | undefined {
  const path = text === undefined ? undefined : findDuplicateKey(text);
  if (path === undefined) return undefined;
  return refuse('validation_error', 'An object of the artifact has the same key twice.', { field: `artifact${path}` });
}

const apply = operation({
  operationId: 'applyProposal',
  summary: 'Install what is proposed, or ask the people who have to approve',
  method: 'POST',
  ...at('/{proposalId}/apply'),
  scope: 'proposals:activate',
  params: ProposalParams,
  body: ApplyProposalRequest,
  bodyOptional: true,
  replies: { 200: AppliedProposal, 202: PendingProposal },
  refusals: [400, 403, 404, 409, 422],
  handle: ({ caller, params, body, header }, { proposals }) => {
    const isHashRequired = header(CONSOLE_HEADER) !== undefined;
    const named = { artifactHash: body?.artifactHash, ifMatch: header('if-match'), isHashRequired };
    return transact(() => proposals.apply(caller, params.proposalId, named), appliedReply);
  },
});

function appliedReply(applied: Applied): Reply {
  if ('installedArtifactRef' in applied) return reply(200, applied);
  return reply(202, { ...applied, activation: 'approval-gate' });
}

const reject = operation({
  operationId: 'rejectProposal',
  summary: 'Reject a proposal; the same evidence is not proposed again',
  method: 'POST',
  ...at('/{proposalId}/reject'),
  scope: 'proposals:write',
  params: ProposalParams,
  body: RejectProposalRequest,
  bodyOptional: true,
  replies: { 200: Proposal },
  refusals: [400, 404, 409],
  handle: ({ caller, params, body: { reason, note, never } = {} }, { proposals }) =>
    transact(() => proposals.reject(caller, params.proposalId, reason ?? note, never), documentReply),
});

const archive = operation({
  operationId: 'archiveProposal',
  summary: 'Archive a proposal; what it installed must be uninstalled first',
  method: 'DELETE',
  ...at('/{proposalId}'),
  scope: 'proposals:write',
  params: ProposalParams,
  replies: { 200: Proposal },
  refusals: [404, 409],
  handle: ({ caller, params }, { proposals }) =>
    transact(() => proposals.archive(caller, params.proposalId), documentReply),
});

function documentReply(row: ProposalRow): Reply {
  return { status: 200, text: proposalText(row), headers: { ETag: entityTagOf(row) } };
}

/** The operations on proposals that the protocol defines. */
export const routes = [list, get, revise, apply, reject, archive];
