import { DRAIN_POLICIES } from '../../../protocol/running/events.ts';
import { ENGINE_VERSION, EVENT_LOG_SCHEMA_VERSION } from '../../../protocol/running/runs.ts';
import { MOCK_PROVIDERS } from '../../../runtime/effects/mock-model.ts';
import type { Capability } from '../../capability.ts';
import { TEST_KEY_PREFIX } from '../../trust/authorization/keys.ts';
import { routes } from './routes.ts';
import { FORCED_ENGINE_VERSIONS } from './rules.ts';
import { type RunService, runService } from './service.ts';

/** Starting, reading, cancelling, pausing and finding runs. */
export const runs: Capability<'runs', RunService> = {
  name: 'runs',
  advertise: ({ limits, conformance }) => ({
    engineVersion: ENGINE_VERSION,
    eventLogSchemaVersion: EVENT_LOG_SCHEMA_VERSION,
    limits,
    runs: { pauseResume: { supported: true, drainPolicies: [...DRAIN_POLICIES] } },
    subWorkflow: { inputMapping: true },
    testing: {
      testKeyPrefix: TEST_KEY_PREFIX,
      forceEngineVersionRange: FORCED_ENGINE_VERSIONS,
      ...(conformance ? { mockProviders: [...MOCK_PROVIDERS] } : {}),
    },
  }),
  service: runService,
  routes,
};
