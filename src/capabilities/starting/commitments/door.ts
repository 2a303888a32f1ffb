import { door } from '../../capability.ts';
import type { CommitmentService } from './service.ts';

export type Commitments = CommitmentService;
export const Commitments = door<Commitments>()('commitments');
