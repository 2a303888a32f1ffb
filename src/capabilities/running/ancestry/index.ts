import { isRefusal } from '../../../protocol/errors.ts';
import { RunAncestry } from '../../../protocol/running/inspection.ts';
import { RunParams } from '../../../protocol/running/runs.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { reply, route } from '../../request.ts';
import { ANCESTRY_TABLES } from './records.ts';
import { type AncestryService, ancestryService } from './service.ts';

const getRunAncestry = route<{ readonly ancestry: AncestryService }>()({
  operationId: 'getRunAncestry',
  summary: 'The run that started this one, if one did',
  method: 'GET',
  path: '/v1/runs/{runId}/ancestry',
  scope: 'runs:read',
  params: RunParams,
  replies: { 200: RunAncestry },
  refusals: [404, 410],
  handle: async ({ caller, params }, { ancestry }) => {
    const outcome = await ancestry.ancestry(caller, params.runId);
    return isRefusal(outcome) ? outcome : reply(200, outcome);
  },
});

/** Which run a run comes from. */
export const ancestry: Capability<'ancestry', AncestryService> = {
  name: 'ancestry',
  // Of the execution model that this stands under, no more than this is served.
  advertise: (_settings, { hostId }) => ({
    multiAgent: {
      executionModel: {
        supported: false,
        version: 1,
        crossHostCausation: { supported: false, hostId, ancestryEndpointSupported: true },
      },
    },
  }),
  migrations: ANCESTRY_TABLES,
  service: ancestryService,
  prepare: (_host, service) => service.learnHostId(),
  routes: [getRunAncestry],
};
