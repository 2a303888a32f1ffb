import { door } from '../../capability.ts';
import type { SynthesisService } from './service.ts';

export type Synthesis = SynthesisService;
export const Synthesis = door<Synthesis>()('synthesis');
