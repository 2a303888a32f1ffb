import { Type } from 'typebox';
import { Closed } from '../../protocol/format/schema.ts';
import { HeartbeatEvaluated, HeartbeatStateChanged } from '../../protocol/starting/heartbeats.ts';
import { reply, route } from '../request.ts';
import type { Heartbeats } from '../starting/heartbeats/door.ts';

/** The rule by which ticks are told and changes start runs, on a heartbeat that is only thought of. */
export const heartbeatTick = route<{ readonly heartbeat: Heartbeats }>()({
  operationId: 'seamHeartbeatTick',
  summary: 'Test seam: what a heartbeat says when it sees this',
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
  handle: async ({ caller, body: { heartbeatId, observedState = {}, simulateSlowMs: slowMs = 0 } }, { heartbeat }) => {
    const result = await heartbeat.tryTick(caller.subject, { heartbeatId, observedState, slowMs });
    return reply(200, { ...result, enqueuedRuns: result.stateChanged.length });
  },
});
