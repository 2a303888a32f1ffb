import type { Refusal } from '../../../protocol/errors.ts';
import type { ProposalImpact } from '../../../protocol/learning/impact.ts';
import { door } from '../../capability.ts';
import type { Caller } from '../../request.ts';

/** What proposals change for what exists. */
export interface Impact {
  of(caller: Caller, proposalId: string): Promise<ProposalImpact | Refusal>;
}

/** The door to the impact of proposals. */
export const Impact = door<Impact>()('impact');
