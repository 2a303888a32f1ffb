import { Type } from 'typebox';
import { NOT_FOUND } from '../../../protocol/errors.ts';
import { AnyObject, Closed } from '../../../protocol/format/schema.ts';
import { RunId } from '../../../protocol/running/runs.ts';
import { route } from '../../request.ts';
import type { ArtifactService } from './service.ts';

const getArtifact = route<{ readonly artifacts: ArtifactService }>()({
  operationId: 'getArtifact',
  summary: 'Get an artifact that a run produced',
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

/** The routes of artifacts. */
export const routes = [getArtifact];
