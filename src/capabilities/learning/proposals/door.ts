import { door } from '../../capability.ts';
import type { ProposalService } from './service.ts';

export type Proposals = ProposalService;
export const Proposals = door<Proposals>()('proposals');
