import { Type } from 'typebox';
import { Closed } from '../../../protocol/format/schema.ts';
import { HeartbeatEvaluated, HeartbeatStateChanged } from '../../../protocol/starting/heartbeats.ts';
import type { Clock } from '../../../system/clock.ts';
import type { Storage } from '../../integrations/storage/door.ts';
import { reply, route } from '../../request.ts';
import { tryTick } from './heartbeat-trial.ts';
import { orRefused } from './or-refused.ts';

/** Applies the rules of heartbeats to one that is not stored as such. */
export const heartbeatTick = route<{ readonly clock: Clock; readonly storage: Storage }>()({
  operationId: 'seamHeartbeatTick',
  summary: 'Test seam: tick a heartbeat with an observed state',
  method: 'POST',
  path: '/v1/host/sample/heartbeat/tick',
  scope: 'manifest:read',
  body: Type.Object({
    heartbeatId: Type.String({ minLength: 1, maxLength: 128 }),
    observedState: Type.Optional(Type.Unknown()),
    simulateSlowMs: Type.Optional(Type.Integer({ minimum: 0, maximum: 600_000 })),
  }),
  replies: {
    200: Closed({
      evaluated: Type.Array(HeartbeatEvaluated),
      stateChanged: Type.Array(HeartbeatStateChanged),
      enqueuedRuns: Type.Integer(),
    }),
  },
  refusals: [400],
  handle: ({ caller, body: { heartbeatId, observedState = {}, simulateSlowMs: slowMs = 0 } }, services) =>
    orRefused(async () => {
      const result = await tryTick(services, caller.subject, { heartbeatId, observedState, slowMs });
      return reply(200, { ...result, enqueuedRuns: result.stateChanged.length });
    }),
});
