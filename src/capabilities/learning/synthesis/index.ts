import { ensureWork, hasten } from '../../../store/queue.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { forgetHabits, SYNTHESIS_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { LOOK, ROUND, type SynthesisService, synthesisService } from './service.ts';

/** Looks at tenants in the background, one at a time on each host: it is never urgent. */
const LOOKS_AT_ONCE = 1;

/** Finds out from runs and feedback what people do again and again, and drafts what would do it for them. */
export const synthesis: Capability<'synthesis', SynthesisService> = {
  name: 'synthesis',
  advertise: () => ({ agents: { proposals: { duplicationDetection: true } } }),
  migrations: SYNTHESIS_TABLES,
  service: synthesisService,
  routes,
  work: (_host, { round, lookAt }) => ({
    [ROUND]: { handle: round },
    [LOOK]: { handle: lookAt, atOnce: LOOKS_AT_ONCE },
  }),
  forget: forgetHabits,
  // At each start, since it may be on now, or more often.
  prepare: async ({ runtime, settings }) => {
    if (settings.synthesis.everyMs === undefined) return;
    await runtime.store.commit([ensureWork({ workId: ROUND, kind: ROUND, tenant: '*', dueAt: 0 }), hasten(ROUND)]);
  },
};
