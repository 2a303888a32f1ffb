import { Type } from 'typebox';
import { Closed, OneOf } from '../../protocol/format/schema.ts';
import { reply, route } from '../request.ts';
import { decideSlot } from '../starting/schedules/door.ts';

const MINUTE_MS = 60_000;
const EVERY_MINUTE = { cron: '* * * * *', timezone: 'UTC' };
/** Two hosts look at a schedule that is due, one after the other. */
const LOOKS = 2;

/** The rule by which slots get runs, on a schedule that is only thought of. */
export const schedulingTick = route<object>()({
  operationId: 'seamSchedulingTick',
  summary: 'Test seam: how many runs a schedule starts when one slot is due, or several were missed',
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
    for (let look = 0; look < LOOKS && awaited <= now; look++) {
      const { isDue, next } = decideSlot(EVERY_MINUTE, 'skip', awaited, now);
      if (isDue) runsFired++;
      awaited = next!;
    }
    return reply(200, { runsFired });
  },
});
