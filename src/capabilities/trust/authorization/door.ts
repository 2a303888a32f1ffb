import { door } from '../../capability.ts';
import type { AuthorizationService } from './service.ts';

export type Authorization = AuthorizationService;
export const Authorization = door<Authorization>()('authorization');
