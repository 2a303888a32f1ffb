import { Type } from 'typebox';
import { Closed, OneOf } from '../../../protocol/format/schema.ts';
import { reply, route } from '../../request.ts';
import { decideSlot } from '../../starting/schedules/rules.ts';

const MINUTE_MS = 60_000;
const EVERY_MINUTE = { cron: '* * * * *', timezone: 'UTC' };
/** Two hosts evaluate a schedule that is due, one after the other. */
const EVALUATIONS = 2;

/** Applies the rule by which slots get runs to a schedule that is not stored. */
export const schedulingTick = route<object>()({
  operationId: 'seamSchedulingTick',
  summary: 'Test seam: count the runs that a schedule starts for a due slot or for missed ones',
  method: 'POST',
  path: '/v1/host/sample/scheduling/tick',
  scope: 'manifest:read',
  body: Type.Object({
    scenario: OneOf(['single-tick', 'missed-window']),
    missedTicks: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  }),
  replies: { 200: Closed({ runsFired: Type.Integer() }) },
  refusals: [400],
  handle: ({ body: { scenario, missedTicks = 1 } }) => {
    let awaited = MINUTE_MS;
    const now = scenario === 'single-tick' ? awaited : awaited + missedTicks * MINUTE_MS;
    let runsFired = 0;
    for (let count = 0; count < EVALUATIONS && awaited <= now; count++) {
      const { isDue, next } = decideSlot(EVERY_MINUTE, 'skip', awaited, now);
      if (isDue) runsFired++;
      awaited = next!;
    }
    return reply(200, { runsFired });
  },
});
