import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { routes } from './routes.ts';
import { DiffService } from './service.ts';

/** Comparing two runs. The protocol has no discovery flag for it. */
export const diff = defineCapability({
  name: 'diff',
  build: ({ runtime }) => ({ routes: bindRoutes(routes, { diff: new DiffService(runtime) }) }),
});
