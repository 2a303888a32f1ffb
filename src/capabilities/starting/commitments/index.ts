import { FIRE_CONDITIONS } from '../../../protocol/starting/commitment-events.ts';
import { defineCapability } from '../../capability.ts';
import { Storage } from '../../integrations/storage/door.ts';
import { bindRoutes } from '../../request.ts';
import { Runs } from '../../running/runs/door.ts';
import { Audit } from '../../trust/audit/door.ts';
import { Observer } from '../starter/observing.ts';
import { StarterService } from '../starter/service.ts';
import { OBSERVATIONS_AT_ONCE, StarterWork } from '../starter/work.ts';
import { Commitments } from './door.ts';
import { COMMITMENT_WORK, commitmentFamily } from './family.ts';
import { COMMITMENT_TABLES } from './records.ts';
import { routes } from './routes.ts';

/** Promises: each starts a run when its time has come or its predicate is true. */
export const commitments = defineCapability({
  name: 'commitments',
  provides: Commitments,
  needs: [Audit, Runs, Storage],
  tables: COMMITMENT_TABLES,
  build: (host, needs) => {
    const family = commitmentFamily(host.runtime.clock, new Observer(host.runtime, needs.storage));
    const { handle } = new StarterWork(host, needs, family);
    const service = new StarterService(host, needs, family);
    return {
      service,
      advertise: () => ({ agents: { commitments: { supported: true, fireConditions: [...FIRE_CONDITIONS] } } }),
      routes: bindRoutes(routes, { starters: service }),
      work: { [COMMITMENT_WORK]: { handle, atOnce: OBSERVATIONS_AT_ONCE } },
    };
  },
});
