import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { Audit } from '../../trust/audit/door.ts';
import { Workflows } from './door.ts';
import { routes } from './routes.ts';
import { WorkflowService } from './service.ts';

/** Registering, reading and removing workflow definitions. */
export const workflows = defineCapability({
  name: 'workflows',
  provides: Workflows,
  needs: [Audit],
  build: (host, needs) => {
    const service = new WorkflowService(host, needs);
    return { service, routes: bindRoutes(routes, { workflows: service, nodeTypes: host.runtime.catalog.types }) };
  },
});
