import { Type } from 'typebox';
import { isRefusal } from '../../../protocol/errors.ts';
import { DebugBundle } from '../../../protocol/running/inspection.ts';
import { RunParams } from '../../../protocol/running/runs.ts';
import { route } from '../../request.ts';
import type { DebugBundleService } from './service.ts';

const getDebugBundle = route<{ readonly debugBundle: DebugBundleService }>()({
  operationId: 'getDebugBundle',
  summary: 'Get everything that helps to debug a run, in one redacted document',
  method: 'GET',
  path: '/v1/runs/{runId}/debug-bundle',
  scope: 'runs:read',
  params: RunParams,
  query: Type.Object({
    maxEvents: Type.Optional(Type.String({ pattern: '^[0-9]{1,15}$', description: 'Limit on the number of events' })),
  }),
  replies: { 200: DebugBundle },
  refusals: [400, 404, 410],
  handle: async ({ caller, params, query }, { debugBundle }) => {
    const eventsMax = query.maxEvents === undefined ? Number.POSITIVE_INFINITY : Number(query.maxEvents);
    const outcome = await debugBundle.bundle(caller, params.runId, eventsMax);
    if (isRefusal(outcome)) return outcome;
    return {
      status: 200,
      headers: { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' },
      stream: outcome.pieces,
    };
  },
});

/** The routes of the debug bundle. */
export const routes = [getDebugBundle];
