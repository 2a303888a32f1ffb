import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { routes } from './routes.ts';
import { InboxService } from './service.ts';

/** One list of everything that waits for a person. */
export const inbox = defineCapability({
  name: 'inbox',
  build: (host) => ({
    routes: bindRoutes(routes, { inbox: new InboxService(host), clock: host.runtime.clock }),
  }),
});
