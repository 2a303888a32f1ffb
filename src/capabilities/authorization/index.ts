import type { Capability } from '../capability.ts';
import { KEY_TABLES } from './records.ts';
import { type AuthorizationService, authorizationService } from './service.ts';

/** Keys: who is asking, and what they may do. */
export const authorization: Capability<'authorization', AuthorizationService> = {
  name: 'authorization',
  migrations: KEY_TABLES,
  service: authorizationService,
};
