import { mcpClientSettings } from '../ai/mcp-client/settings.ts';
import { Memory } from '../ai/memory/door.ts';
import { ModelProviders, Models } from '../ai/models/door.ts';
import { Packs } from '../ai/packs/door.ts';
import { Prompts } from '../ai/prompts/door.ts';
import { defineCapability } from '../capability.ts';
import { hostSettings } from '../host-settings.ts';
import { Storage } from '../integrations/storage/door.ts';
import { Goals } from '../learning/goals/door.ts';
import { Proposals } from '../learning/proposals/door.ts';
import { Retention } from '../operations/retention/door.ts';
import { Webhooks } from '../operations/webhooks/door.ts';
import { bindRoutes } from '../request.ts';
import { MockProviders } from '../running/runs/door.ts';
import { Workflows } from '../running/workflows/door.ts';
import { joinSettings } from '../settings.ts';
import { Commitments } from '../starting/commitments/door.ts';
import { Heartbeats } from '../starting/heartbeats/door.ts';
import { Schedules } from '../starting/schedules/door.ts';
import { authorizationSettings } from '../trust/authorization/settings.ts';
import { fixturesFor, installFixtures } from './install.ts';
import { MOCK_PROVIDERS, mockableModel, mockProviders } from './mock-providers.ts';
import { CONFORMANCE_NODES, REPLACING_NODES } from './nodes/index.ts';
import { countingProbe } from './probe-tool.ts';
import { ProgrammedModel } from './programmed-model.ts';
import { CONFORMANCE_TABLES } from './records.ts';
import { routes } from './routes.ts';

/**
 * The scaffolding of conformance suites: fixtures, test seams, mock models and node types. A host mounts it last and
 * only under the conformance switch; in production none of its modules is loaded.
 */
export const conformance = defineCapability({
  name: 'conformance',
  needs: [
    Workflows,
    Prompts,
    Packs,
    Proposals,
    Goals,
    Memory,
    Storage,
    Webhooks,
    Retention,
    Schedules,
    Heartbeats,
    Commitments,
    Models,
  ],
  settings: joinSettings(hostSettings, joinSettings(mcpClientSettings, authorizationSettings)),
  tables: CONFORMANCE_TABLES,
  nodes: () => [...CONFORMANCE_NODES, ...REPLACING_NODES],
  build: (host, needs, settings) => {
    const { runtime } = host;
    const programmedModel = new ProgrammedModel();
    return {
      advertise: () => ({
        testing: { mockProviders: [...MOCK_PROVIDERS] },
        production: { retention: { testForceExpire: true } },
        fixtures: fixturesFor(settings).map(({ id }) => id),
        conformance: { mockAgent: true },
      }),
      routes: bindRoutes(routes, { ...needs, programmedModel }),
      // This capability is mounted after models, so its driver takes the place of the one that it wraps.
      seams: { model: mockableModel(needs.models.seam, runtime) },
      tools: [countingProbe(runtime.store)],
      extensions: [ModelProviders.of(programmedModel), MockProviders.of(mockProviders)],
      prepare: () => installFixtures(runtime, needs, settings),
    };
  },
});
