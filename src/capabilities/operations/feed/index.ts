import { ensureWork } from '../../../store/queue.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { FEED_TABLES } from './records.ts';
import { followTenant } from './routes.ts';
import { type FeedService, feedService } from './service.ts';
import { sweepHandler } from './sweep.ts';

const SWEEP = 'sweep-feeds';

/** What happens in a tenant as one stream, for consoles and dashboards. */
export const feed: Capability<'feed', FeedService> = {
  name: 'feed',
  migrations: FEED_TABLES,
  service: feedService,
  routes: [followTenant],
  reactions: (_host, { reaction }) => [reaction],
  work: ({ runtime }) => ({ [SWEEP]: { handle: sweepHandler(runtime) } }),
  prepare: async ({ runtime }, { prepare }) => {
    await prepare();
    await runtime.store.commit([ensureWork({ workId: SWEEP, kind: SWEEP, tenant: '*', dueAt: 0 })]);
  },
};
