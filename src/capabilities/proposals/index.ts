import type { Capability } from '../capability.ts';
import { PROPOSAL_TABLES } from './records.ts';
import { type ProposalService, proposalService } from './service.ts';

/** What agents learn from runs stays without effect until a person applies it. */
export const proposals: Capability<'proposals', ProposalService> = {
  name: 'proposals',
  migrations: PROPOSAL_TABLES,
  service: proposalService,
};
