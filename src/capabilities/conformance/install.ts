import { isRefusal } from '../../protocol/errors.ts';
import type { WorkflowDefinition } from '../../protocol/running/workflows.ts';
import { type Decide, perform } from '../../runtime/change.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { McpServerSettings } from '../ai/mcp-client/settings.ts';
import type { Memory } from '../ai/memory/door.ts';
import type { Packs } from '../ai/packs/door.ts';
import type { Prompts } from '../ai/prompts/door.ts';
import type { Workflows } from '../running/workflows/door.ts';
import { AGENT_FIXTURES } from './agent-fixtures.ts';
import { AGENT_PACK } from './agent-pack.ts';
import { CHAIN_PACK } from './chain-pack.ts';
import { FIXTURES, FOREIGN_MEMORY, MCP_FIXTURE } from './fixtures.ts';
import { PROMPT_TEMPLATES } from './prompt-templates.ts';
import { createSamples, type SampleServices, type SampleSettings } from './samples.ts';

/** The services that fixtures are installed with. */
interface FixtureServices extends SampleServices {
  readonly workflows: Workflows;
  readonly prompts: Prompts;
  readonly packs: Packs;
  readonly memory: Memory;
}

interface FixtureSettings extends SampleSettings {
  readonly mcpServers: readonly McpServerSettings[];
}

/** Owns an entry that no suite may read: its tenant has no key. */
const OTHER_TENANT = { tenant: 'conformance-another-tenant', runId: 'none', nodeId: 'none', effectId: 'seed' };

/** The workflows that suites start by name. One of them needs an MCP server. */
export function fixturesFor({ mcpServers }: Pick<FixtureSettings, 'mcpServers'>): readonly WorkflowDefinition[] {
  return [...FIXTURES, ...AGENT_FIXTURES, ...(mcpServers.length > 0 ? [MCP_FIXTURE] : [])];
}

/** Installs everything that suites refer to by name. Installing it again changes nothing. */
export async function installFixtures(
  runtime: Runtime,
  services: FixtureServices,
  settings: FixtureSettings,
): Promise<void> {
  const { workflows, prompts, packs, memory } = services;
  await createSamples(runtime, services, settings);
  await memory.perform(OTHER_TENANT, { op: 'put', memoryRef: FOREIGN_MEMORY, content: 'not yours', tags: [] });
  const install = async (id: string, decide: Decide<unknown>): Promise<void> => {
    const outcome = await perform(runtime, decide);
    if (isRefusal(outcome)) throw new Error(`fixture ${id}: ${outcome.message}`);
  };
  for (const pack of [CHAIN_PACK, AGENT_PACK]) await install(pack.name, () => packs.installShared(pack));
  for (const prompt of PROMPT_TEMPLATES) await install(prompt.templateId, () => prompts.installShared(prompt));
  for (const workflow of fixturesFor(settings)) await install(workflow.id, () => workflows.registerShared(workflow));
}
