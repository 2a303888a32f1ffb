import { defineCapability } from '../../capability.ts';
import { hostSettings } from '../../host-settings.ts';
import { metricsSettings } from '../../metrics-settings.ts';
import { Interrupts } from '../../people/interrupts/door.ts';
import { bindRoutes } from '../../request.ts';
import { Runs } from '../../running/runs/door.ts';
import { joinSettings } from '../../settings.ts';
import { shareSettings } from '../../share-settings.ts';
import { retentionSettings } from '../retention/settings.ts';
import { routes } from './routes.ts';
import { HealthService } from './service.ts';

/** What operators look at first: hosts, queue, store, limits and slow nodes. */
export const health = defineCapability({
  name: 'health',
  needs: [Interrupts, Runs],
  settings: joinSettings(joinSettings(hostSettings, metricsSettings), joinSettings(shareSettings, retentionSettings)),
  build: (host, needs, settings) => ({
    routes: bindRoutes(routes, { health: new HealthService(host, needs, settings) }),
  }),
});
