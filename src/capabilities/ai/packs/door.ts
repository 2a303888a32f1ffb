import { door } from '../../capability.ts';
import type { PackService } from './service.ts';

export type Packs = PackService;
export const Packs = door<Packs>()('packs');
