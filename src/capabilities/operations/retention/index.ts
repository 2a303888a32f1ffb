import { ensureWork, wake } from '../../../store/queue.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { RETENTION_TABLES } from './records.ts';
import { type RetentionService, retentionService, SWEEP } from './service.ts';

/** Runs are kept for so long after their end, and then cleared away. */
export const retention: Capability<'retention', RetentionService> = {
  name: 'retention',
  advertise: ({ retentionMs }) => ({
    production: {
      retention: {
        supported: true,
        minWindowSeconds: Math.floor(retentionMs / 1_000),
        testForceExpire: false,
      },
    },
  }),
  migrations: RETENTION_TABLES,
  service: retentionService,
  work: (_host, service) => ({ [SWEEP]: { handle: () => service.sweep() } }),
  // At each start, since the time that runs are kept may be another one now.
  prepare: async ({ runtime }) => {
    await runtime.store.commit([ensureWork({ workId: SWEEP, kind: SWEEP, tenant: '*', dueAt: 0 }), wake(SWEEP)]);
  },
};
