import { Type } from 'typebox';
import { NOT_FOUND } from '../../../protocol/errors.ts';
import { AnyObject, Closed } from '../../../protocol/format/schema.ts';
import { RunId } from '../../../protocol/running/runs.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { route } from '../../request.ts';
import { keepArtifacts } from './keep.ts';
import { ARTIFACT_TABLES, forgetArtifacts } from './records.ts';
import { type ArtifactService, artifactService } from './service.ts';

const getArtifact = route<{ readonly artifacts: ArtifactService }>()({
  operationId: 'getArtifact',
  summary: 'Something that a run produced',
  method: 'GET',
  path: '/v1/runs/{runId}/artifacts/{artifactId}',
  scope: 'artifacts:read',
  params: Closed({ runId: RunId, artifactId: Type.String({ minLength: 1, maxLength: 256 }) }),
  replies: { 200: AnyObject },
  refusals: [404],
  handle: async ({ caller, params }, { artifacts }) => {
    const text = await artifacts.find(caller, params.runId, params.artifactId);
    return text === undefined ? NOT_FOUND : { status: 200, text };
  },
});

/** What runs produce and keep. */
export const artifacts: Capability<'artifacts', ArtifactService> = {
  name: 'artifacts',
  migrations: ARTIFACT_TABLES,
  service: artifactService,
  reactions: () => [keepArtifacts],
  forget: (run) => [forgetArtifacts(run)],
  routes: [getArtifact],
};
