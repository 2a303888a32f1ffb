import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { ANCESTRY_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { AncestryService } from './service.ts';

/** Which run started a run. */
export const ancestry = defineCapability({
  name: 'ancestry',
  tables: ANCESTRY_TABLES,
  build: ({ runtime }) => {
    const service = new AncestryService(runtime);
    return {
      advertise: () => ({
        multiAgent: {
          executionModel: {
            // Every cause in a log is an event of this installation, so none has a causationHostId.
            crossHostCausation: { supported: true, hostId: service.hostId, ancestryEndpointSupported: true },
          },
        },
      }),
      prepare: () => service.loadHostId(),
      routes: bindRoutes(routes, { ancestry: service }),
    };
  },
});
