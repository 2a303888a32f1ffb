import { door } from '../../capability.ts';
import type { StorageService } from './service.ts';

export type Storage = StorageService;
export const Storage = door<Storage>()('storage');
