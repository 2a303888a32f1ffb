import { MAX_RUNTIME_MS, MIN_INTERVAL_SEC } from '../../../protocol/starting/heartbeats.ts';
import { defineCapability } from '../../capability.ts';
import { Storage } from '../../integrations/storage/door.ts';
import { bindRoutes } from '../../request.ts';
import { Runs } from '../../running/runs/door.ts';
import { Audit } from '../../trust/audit/door.ts';
import { Observer } from '../starter/observing.ts';
import { StarterService } from '../starter/service.ts';
import { OBSERVATIONS_AT_ONCE, StarterWork } from '../starter/work.ts';
import { Heartbeats } from './door.ts';
import { HEARTBEAT_WORK, heartbeatFamily } from './family.ts';
import { HEARTBEAT_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { HeartbeatService } from './service.ts';

/** Observations at an interval that start runs only when what they see has changed. */
export const heartbeat = defineCapability({
  name: 'heartbeat',
  provides: Heartbeats,
  needs: [Audit, Runs, Storage],
  tables: HEARTBEAT_TABLES,
  build: (host, needs) => {
    const family = heartbeatFamily(host.runtime, new Observer(host.runtime, needs.storage));
    const starters = new StarterService(host, needs, family);
    const heartbeats = new HeartbeatService(host, starters);
    const { handle } = new StarterWork(host, needs, family);
    return {
      service: starters,
      advertise: () => ({
        heartbeat: { supported: true, minIntervalSec: MIN_INTERVAL_SEC, maxRuntimeMs: MAX_RUNTIME_MS },
      }),
      routes: bindRoutes(routes, { starters, heartbeats }),
      work: { [HEARTBEAT_WORK]: { handle, atOnce: OBSERVATIONS_AT_ONCE } },
    };
  },
});
