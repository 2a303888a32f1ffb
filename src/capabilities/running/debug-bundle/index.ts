import { defineCapability, optional } from '../../capability.ts';
import { Feedback } from '../../people/feedback/door.ts';
import { bindRoutes } from '../../request.ts';
import { routes } from './routes.ts';
import { DebugBundleService } from './service.ts';

/** One document with everything about a run, redacted so that it can be shared. */
export const debugBundle = defineCapability({
  name: 'debugBundle',
  needs: [optional(Feedback)],
  build: (host, needs) => ({
    advertise: () => ({
      debugBundle: { supported: true },
      production: { debugBundle: { supported: true, truncationMetadata: true } },
    }),
    routes: bindRoutes(routes, { debugBundle: new DebugBundleService(host, needs) }),
  }),
});
