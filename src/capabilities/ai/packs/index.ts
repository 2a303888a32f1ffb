import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { Audit } from '../../trust/audit/door.ts';
import { Packs } from './door.ts';
import { publishedRoutes } from './published-routes.ts';
import { PACK_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { PackService } from './service.ts';
import { packSettings } from './settings.ts';

/** Packs of agents and of workflow chains. Authors expand a chain into a workflow; runs see only the expansion. */
export const packs = defineCapability({
  name: 'packs',
  provides: Packs,
  needs: [Audit],
  settings: packSettings,
  tables: PACK_TABLES,
  build: (host, { audit }, settings) => {
    const service = new PackService(host, audit, settings);
    return {
      service,
      advertise: () => ({ workflowChainPacks: { supported: true } }),
      routes: bindRoutes([...routes, ...publishedRoutes], { packs: service }),
    };
  },
});
