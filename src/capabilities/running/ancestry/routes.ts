import { RunAncestry } from '../../../protocol/running/inspection.ts';
import { RunParams } from '../../../protocol/running/runs.ts';
import { answer, route } from '../../request.ts';
import type { AncestryService } from './service.ts';

const getRunAncestry = route<{ readonly ancestry: AncestryService }>()({
  operationId: 'getRunAncestry',
  summary: 'Get the run that started this one, if there is one',
  method: 'GET',
  path: '/v1/runs/{runId}/ancestry',
  scope: 'runs:read',
  params: RunParams,
  replies: { 200: RunAncestry },
  refusals: [404, 410],
  handle: async ({ caller, params }, { ancestry }) => answer(200, await ancestry.ancestryOf(caller, params.runId)),
});

/** The routes of ancestry. */
export const routes = [getRunAncestry];
