import { commitOrThrow } from '../../../runtime/change.ts';
import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { Feed } from './door.ts';
import { FEED_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { FeedService } from './service.ts';
import { SWEEP, sweepHandler, sweepWork } from './work.ts';

/** The event feed of a tenant: one stream of what happens in it, for consoles and dashboards. */
export const feed = defineCapability({
  name: 'feed',
  provides: Feed,
  tables: FEED_TABLES,
  build: ({ runtime }) => {
    const service = new FeedService(runtime);
    return {
      service,
      routes: bindRoutes(routes, { feed: service }),
      reactions: [service.reaction],
      onAppend: [({ identity }) => service.wake(identity.subject.tenant)],
      onHint: service.onHint,
      work: { [SWEEP]: { handle: sweepHandler(runtime) } },
      prepare: async () => {
        await service.prepare();
        await commitOrThrow(runtime.store, [sweepWork()]);
      },
    };
  },
});
