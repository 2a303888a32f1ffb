import { FORK_MODES } from '../../../protocol/running/forks.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { routes } from './routes.ts';
import { type ReplayService, replayService } from './service.ts';

/** Runs that begin with another one's history: to see whether it would happen again, or what else might have. */
export const replay: Capability<'replay', ReplayService> = {
  name: 'replay',
  advertise: ({ retentionMs }) => ({
    replay: {
      supported: true,
      modes: [...FORK_MODES],
      sideEffectSuppression: 'recorded-outcome',
      retention: { windowSeconds: Math.floor(retentionMs / 1_000) },
    },
  }),
  service: replayService,
  routes,
};
