import { RunParams } from '../../protocol/running/runs.ts';
import type { Retention } from '../operations/retention/door.ts';
import { NO_CONTENT, route } from '../request.ts';

/** Lets a suite see what becomes of a run whose time is up. */
export const forceExpire = route<{ readonly retention: Retention }>()({
  operationId: 'seamForceExpire',
  summary: 'Test seam: clear a run away before its time',
  method: 'POST',
  path: '/v1/host/sample/test/force-expire/{runId}',
  scope: 'runs:cancel',
  params: RunParams,
  replies: { 204: 'nothing' },
  refusals: [404, 410],
  handle: async ({ caller, params }, { retention }) => (await retention.expire(caller, params.runId)) ?? NO_CONTENT,
});
