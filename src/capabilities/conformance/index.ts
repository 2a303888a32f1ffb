import { unchanged } from '../../runtime/change.ts';
import { mcpClientSettings } from '../ai/mcp-client/settings.ts';
import { McpEndpoint } from '../ai/mcp-server/door.ts';
import { Memory } from '../ai/memory/door.ts';
import { ModelProviders, Models } from '../ai/models/door.ts';
import { type ModelSettings, modelSettings } from '../ai/models/settings.ts';
import { Packs } from '../ai/packs/door.ts';
import { Prompts } from '../ai/prompts/door.ts';
import { defineCapability, optional } from '../capability.ts';
import { hostSettings } from '../host-settings.ts';
import { httpClientSettings, TENANT_SECRETS } from '../integrations/http-client/settings.ts';
import { Storage } from '../integrations/storage/door.ts';
import { Goals } from '../learning/goals/door.ts';
import { Proposals } from '../learning/proposals/door.ts';
import { Verifiers } from '../learning/verifiers/door.ts';
import { Retention } from '../operations/retention/door.ts';
import { Webhooks } from '../operations/webhooks/door.ts';
import { Interrupts } from '../people/interrupts/door.ts';
import { bindRoutes } from '../request.ts';
import { Events } from '../running/events/door.ts';
import { MockProviders, Runs } from '../running/runs/door.ts';
import { WorkflowCompanions, Workflows } from '../running/workflows/door.ts';
import { joinSettings } from '../settings.ts';
import { Commitments } from '../starting/commitments/door.ts';
import { Authorization } from '../trust/authorization/door.ts';
import { authorizationSettings } from '../trust/authorization/settings.ts';
import { fixturesFor, installFixtures } from './fixtures/index.ts';
import { MOCK_PROVIDERS, mockableModel, mockProviders } from './mock-providers.ts';
import { CONFORMANCE_NODES, type DefaultModel, REPLACING_NODES, requiresMissingAbility } from './nodes/index.ts';
import { ProgrammedModel } from './programmed-model.ts';
import { CONFORMANCE_TABLES } from './records.ts';
import { commitmentHandler } from './seams/commitment-trial.ts';
import { routes } from './seams/index.ts';
import { Switches } from './switches.ts';
import { conformanceTools } from './tools.ts';

/**
 * The scaffolding of conformance suites: fixtures, test seams, mock models and node types. A host mounts it last and
 * only under the conformance switch; in production none of its modules is loaded.
 */
export const conformance = defineCapability({
  name: 'conformance',
  needs: [
    Workflows,
    Runs,
    Events,
    Prompts,
    Packs,
    optional(Proposals),
    optional(Goals),
    Memory,
    Storage,
    Webhooks,
    Retention,
    Commitments,
    Models,
    McpEndpoint,
    Verifiers,
    Interrupts,
    Authorization,
  ],
  settings: joinSettings(
    joinSettings(hostSettings, authorizationSettings),
    joinSettings(mcpClientSettings, joinSettings(modelSettings, httpClientSettings)),
  ),
  tables: CONFORMANCE_TABLES,
  nodes: ({ models }) => [...CONFORMANCE_NODES, requiresMissingAbility(defaultModel(models)), ...REPLACING_NODES],
  build: (host, needs, settings) => {
    const { runtime } = host;
    const programmedModel = new ProgrammedModel();
    const switches = new Switches();
    const seamServices = {
      ...needs,
      runtime,
      clock: runtime.clock,
      programmedModel,
      switches,
      evaluateCommitment: commitmentHandler(host, needs),
    };
    return {
      advertise: () => ({
        testing: { mockProviders: [...MOCK_PROVIDERS] },
        production: { retention: { testForceExpire: true } },
        fixtures: fixturesFor(settings).map(({ id }) => id),
        conformance: { mockAgent: true },
        // Every tenant has the secret that suites ask for.
        secrets: TENANT_SECRETS,
      }),
      routes: bindRoutes(routes, seamServices),
      // This capability is mounted after models, so its driver takes the place of the one that it wraps.
      seams: { model: mockableModel(needs.models.seam, runtime) },
      tools: [conformanceTools(runtime.store, settings.credentials)],
      extensions: [
        ModelProviders.of(programmedModel),
        MockProviders.of(mockProviders),
        WorkflowCompanions.of(async ({ subject }, _workflowId, definition) => {
          return switches.check(subject.tenant, definition?.nodes ?? []) ?? unchanged(undefined);
        }),
      ],
      prepare: () => installFixtures(runtime, needs, settings),
    };
  },
});

/** The first model of the first configured provider; the programmed one where none is configured. */
function defaultModel([first]: readonly ModelSettings[]): DefaultModel {
  return first ? { provider: first.provider, model: first.models[0]! } : { provider: 'mock', model: 'mock-mini' };
}
