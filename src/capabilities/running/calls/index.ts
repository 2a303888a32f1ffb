import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { Events } from '../events/door.ts';
import { Runs } from '../runs/door.ts';
import { routes } from './routes.ts';
import { CallService } from './service.ts';

/** Running a workflow and getting its result, in one request. */
export const calls = defineCapability({
  name: 'calls',
  needs: [Runs, Events],
  build: ({ runtime }, needs) => {
    const service = new CallService(runtime, needs);
    return { routes: bindRoutes(routes, { calls: service }), onAppend: [service.onAppend] };
  },
});
