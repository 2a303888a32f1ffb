import { door } from '../../capability.ts';
import type { MemoryService } from './service.ts';

export type Memory = MemoryService;
export const Memory = door<Memory>()('memory');
