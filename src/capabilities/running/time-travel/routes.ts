import { Type } from 'typebox';
import { RunParams, RunSnapshot } from '../../../protocol/running/runs.ts';
import { answer, route } from '../../request.ts';
import type { TimeTravelService } from './service.ts';

const getRunState = route<{ readonly timeTravel: TimeTravelService }>()({
  operationId: 'getRunState',
  summary: 'Get a run as it was after an event',
  method: 'GET',
  path: '/v1/host/capstan/runs/{runId}/state',
  scope: 'runs:read',
  params: RunParams,
  query: Type.Object({
    sequence: Type.String({ pattern: '^[0-9]{1,15}$', description: 'Sequence of the last event that counts' }),
  }),
  replies: { 200: RunSnapshot },
  refusals: [400, 404, 410, 422],
  handle: async ({ caller, params, query }, { timeTravel }) =>
    answer(200, await timeTravel.stateAfter(caller, params.runId, Number(query.sequence))),
});

/** The routes of time travel. */
export const routes = [getRunState];
