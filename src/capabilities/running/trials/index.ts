import { deleteDefinitionOf } from '../../../store/definitions.ts';
import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { Runs } from '../runs/door.ts';
import { Workflows } from '../workflows/door.ts';
import { routes } from './routes.ts';
import { TrialService } from './service.ts';

/** Runs of single nodes, for whoever builds a workflow. */
export const trials = defineCapability({
  name: 'trials',
  needs: [Workflows, Runs],
  build: ({ runtime }, needs) => ({
    routes: bindRoutes(routes, { trials: new TrialService(runtime, needs) }),
    forgetRun: (run) => [deleteDefinitionOf(run, 'trial')],
  }),
});
