import { defineCapability } from '../../capability.ts';
import { Feed } from '../../operations/feed/door.ts';
import { bindRoutes } from '../../request.ts';
import { routes } from './routes.ts';
import { InboxService } from './service.ts';
import { InboxViewing } from './viewing.ts';
import { INBOX_TABLES } from './viewing-records.ts';

/** One list of everything that waits for a person, and who looks at what of it. */
export const inbox = defineCapability({
  name: 'inbox',
  needs: [Feed],
  tables: INBOX_TABLES,
  build: (host, { feed }) => {
    const service = new InboxService(host, host.runtime.store);
    const viewing = new InboxViewing(host.runtime, { inbox: service, feed });
    return {
      routes: bindRoutes(routes, { inbox: service, viewing, clock: host.runtime.clock }),
      stop: () => viewing.stop(),
    };
  },
});
