import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { storeArtifacts } from './reactions.ts';
import { ARTIFACT_TABLES, forgetArtifacts } from './records.ts';
import { routes } from './routes.ts';
import { ArtifactService } from './service.ts';

/** Artifacts that runs produce. */
export const artifacts = defineCapability({
  name: 'artifacts',
  tables: ARTIFACT_TABLES,
  build: ({ runtime }) => ({
    routes: bindRoutes(routes, { artifacts: new ArtifactService(runtime) }),
    reactions: [storeArtifacts],
    forgetRun: (run) => [forgetArtifacts(run)],
  }),
});
