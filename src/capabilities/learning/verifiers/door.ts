import { door } from '../../capability.ts';
import type { VerifierService } from './service.ts';

export type Verifiers = VerifierService;
export const Verifiers = door<Verifiers>()('verifiers');
