import type { LegacyCapability as Capability } from '../../legacy.ts';
import { publishedRoutes } from './published.ts';
import { PACK_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { type PackService, packService } from './service.ts';

/** Packs of workflow chains: pieces of workflows that authors fill in. Runs know only what they came to. */
export const packs: Capability<'packs', PackService> = {
  name: 'packs',
  advertise: () => ({ workflowChainPacks: { supported: true } }),
  migrations: PACK_TABLES,
  service: packService,
  routes: [...routes, ...publishedRoutes],
};
