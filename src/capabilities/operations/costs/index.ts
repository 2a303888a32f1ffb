import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { Costs } from './door.ts';
import { countCosts } from './reactions.ts';
import { COST_TABLES, deleteCosts } from './records.ts';
import { routes } from './routes.ts';
import { CostService } from './service.ts';

/** What model calls cost, counted as they are recorded. */
export const costs = defineCapability({
  name: 'costs',
  provides: Costs,
  tables: COST_TABLES,
  build: ({ runtime }) => {
    const service = new CostService(runtime);
    return {
      service,
      routes: bindRoutes(routes, { costs: service }),
      reactions: [countCosts],
      forgetRun: (run) => [deleteCosts(run)],
    };
  },
});
