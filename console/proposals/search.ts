import type { ProposalFilters } from '../api/proposals.ts';
import { ARTIFACT_KINDS, PROPOSAL_STATES } from './kinds.ts';

/** What of the proposals is listed, as the address has it. */
export interface ProposalsSearch extends ProposalFilters {
  /** What is installed, instead of what is proposed. */
  readonly view?: 'installed';
}

/** What is compared on the page of a proposal, as the address has it. */
export interface ProposalSearch {
  /** The revision on the left, from 1; 0 is what is installed now. */
  readonly from?: number;
  readonly to?: number;
  readonly edit?: true;
}

/** Reads the filters; what makes no sense is left out. */
export function readProposalsSearch(search: Record<string, unknown>): ProposalsSearch {
  const state = PROPOSAL_STATES.find((known) => known === search.state);
  const kind = ARTIFACT_KINDS.find((known) => known === search.kind);
  return {
    ...(state && { state }),
    ...(kind && { kind }),
    ...(search.view === 'installed' && { view: 'installed' as const }),
  };
}

/** Reads what is compared. */
export function readProposalSearch({ from, to, edit }: Record<string, unknown>): ProposalSearch {
  const isRevision = (value: unknown): value is number => Number.isInteger(value) && Number(value) >= 0;
  return {
    ...(isRevision(from) && { from }),
    ...(isRevision(to) && { to }),
    ...(edit === true && { edit: true as const }),
  };
}
