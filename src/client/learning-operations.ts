import type {
  AppliedProposal,
  InstalledArtifact,
  InstalledArtifactSummary,
  PendingProposal,
  Proposal,
  ProposalEvidence,
  ProposalList,
  RejectProposalRequest,
  ReviseProposalRequest,
} from '../protocol/proposals.ts';
import { HOST, operation, type Page, type PageQuery, V1 } from './operation.ts';

const needs = 'agents.proposals';

export interface ProposalFilter extends PageQuery {
  readonly state?: string;
  readonly kind?: string;
}

/** What agents learn, and what people make of it. */
export const LEARNING_OPERATIONS = {
  listProposals: operation<{ query?: ProposalFilter; reply: ProposalList }>()('GET', `${V1}/proposals`, {
    takes: 'query',
    needs,
  }),
  getProposal: operation<{ reply: Proposal }>()('GET', `${V1}/proposals/{proposalId}`, { needs }),
  reviseProposal: operation<{ body: ReviseProposalRequest; reply: Proposal }>()(
    'PATCH',
    `${V1}/proposals/{proposalId}`,
    { takes: 'body', needs },
  ),
  applyProposal: operation<{ body?: object; reply: AppliedProposal | PendingProposal }>()(
    'POST',
    `${V1}/proposals/{proposalId}/apply`,
    { takes: 'body', needs },
  ),
  rejectProposal: operation<{ body?: RejectProposalRequest; reply: Proposal }>()(
    'POST',
    `${V1}/proposals/{proposalId}/reject`,
    { takes: 'body', needs },
  ),
  archiveProposal: operation<{ reply: Proposal }>()('DELETE', `${V1}/proposals/{proposalId}`, { needs }),
  getProposalEvidence: operation<{ reply: ProposalEvidence }>()('GET', `${HOST}/proposals/{proposalId}/evidence`, {
    needs,
  }),
  listInstalledArtifacts: operation<{ query?: PageQuery; reply: Page<InstalledArtifactSummary> }>()(
    'GET',
    `${HOST}/artifacts/installed`,
    { takes: 'query', needs },
  ),
  getInstalledArtifact: operation<{ reply: InstalledArtifact }>()('GET', `${HOST}/artifacts/installed/{ref}`, {
    needs,
  }),
  uninstallArtifact: operation<{ reply: undefined }>()('DELETE', `${HOST}/artifacts/installed/{ref}`, { needs }),
} as const;
