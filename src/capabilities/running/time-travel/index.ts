import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { routes } from './routes.ts';
import { TimeTravelService } from './service.ts';

/** Reading a run as it was at an earlier event. */
export const timeTravel = defineCapability({
  name: 'timeTravel',
  build: ({ runtime }) => ({ routes: bindRoutes(routes, { timeTravel: new TimeTravelService(runtime) }) }),
});
