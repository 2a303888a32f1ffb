import { door } from '../../capability.ts';
import type { InterruptService } from './service.ts';

export type Interrupts = InterruptService;
export const Interrupts = door<Interrupts>()('interrupts');
