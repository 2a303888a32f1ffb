import { Packs } from '../../ai/packs/door.ts';
import { defineCapability, optional } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { Workflows } from '../../running/workflows/door.ts';
import { Schedules } from '../../starting/schedules/door.ts';
import { Goals } from '../goals/door.ts';
import { Proposals } from '../proposals/door.ts';
import { Impact } from './door.ts';
import { routes } from './routes.ts';
import { ImpactService } from './service.ts';

/** Tells what applying a proposal would change for what exists already. */
export const impact = defineCapability({
  name: 'impact',
  provides: Impact,
  needs: [optional(Proposals), Workflows, Packs, Schedules, optional(Goals)],
  build: ({ runtime }, { proposals, ...needs }) => {
    if (!proposals) return {};
    const service = new ImpactService({ runtime }, { ...needs, proposals });
    return { service, routes: bindRoutes(routes, { impact: service }) };
  },
});
