import { DRAIN_POLICIES } from '../../../protocol/running/events.ts';
import { ENGINE_VERSION, EVENT_LOG_SCHEMA_VERSION } from '../../../protocol/running/runs.ts';
import { modelSettings } from '../../ai/models/settings.ts';
import { defineCapability, optional } from '../../capability.ts';
import { hostSettings } from '../../host-settings.ts';
import { Costs } from '../../operations/costs/door.ts';
import { Webhooks } from '../../operations/webhooks/door.ts';
import { Feedback } from '../../people/feedback/door.ts';
import { InboxSources } from '../../people/inbox/door.ts';
import { Interrupts } from '../../people/interrupts/door.ts';
import { bindRoutes } from '../../request.ts';
import { joinSettings } from '../../settings.ts';
import { TEST_KEY_PREFIX } from '../../trust/authorization/door.ts';
import { Runs } from './door.ts';
import { quarantineInboxSource } from './inbox.ts';
import { routes } from './routes.ts';
import { FORCED_ENGINE_VERSIONS } from './rules.ts';
import { RunService } from './service.ts';

/** Starting, reading, cancelling, pausing and finding runs. */
export const runs = defineCapability({
  name: 'runs',
  provides: Runs,
  needs: [Interrupts, Costs, optional(Webhooks), optional(Feedback)],
  settings: joinSettings(hostSettings, modelSettings),
  build: (host, needs, settings) => {
    const { maxNodeExecutions, maxRunDurationMs, maxRequestBodyBytes } = settings;
    const service = new RunService(host, settings);
    return {
      service,
      advertise: () => ({
        engineVersion: ENGINE_VERSION,
        eventLogSchemaVersion: EVENT_LOG_SCHEMA_VERSION,
        limits: { maxNodeExecutions, maxRunDurationMs, maxRequestBodyBytes },
        runs: { pauseResume: { supported: true, drainPolicies: [...DRAIN_POLICIES] } },
        subWorkflow: { inputMapping: true },
        testing: {
          testKeyPrefix: TEST_KEY_PREFIX,
          forceEngineVersionRange: FORCED_ENGINE_VERSIONS,
        },
      }),
      extensions: [InboxSources.of(quarantineInboxSource(host))],
      routes: bindRoutes(routes, { runs: service, runtime: host.runtime, ...needs }),
    };
  },
});
