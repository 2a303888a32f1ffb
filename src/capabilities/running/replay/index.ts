import { FORK_MODES } from '../../../protocol/running/forks.ts';
import { defineCapability } from '../../capability.ts';
import { Retention } from '../../operations/retention/door.ts';
import { retentionSettings } from '../../operations/retention/settings.ts';
import { bindRoutes } from '../../request.ts';
import { Audit } from '../../trust/audit/door.ts';
import { Runs } from '../runs/door.ts';
import { routes } from './routes.ts';
import { ReplayService } from './service.ts';

/** Forks of runs: replays that reuse recorded outcomes, and branches that go another way from some event on. */
export const replay = defineCapability({
  name: 'replay',
  needs: [Runs, Retention, Audit],
  settings: retentionSettings,
  build: (host, needs, { retentionMs }) => ({
    advertise: () => ({
      replay: {
        supported: true,
        modes: [...FORK_MODES],
        sideEffectSuppression: 'recorded-outcome',
        retention: { windowSeconds: Math.floor(retentionMs / 1_000) },
      },
    }),
    routes: bindRoutes(routes, { replay: new ReplayService(host, needs) }),
  }),
});
