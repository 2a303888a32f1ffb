import { isRefusal } from '../../protocol/errors.ts';
import type { WorkflowDefinition } from '../../protocol/running/workflows.ts';
import { type Decide, perform } from '../../runtime/change.ts';
import type { MemoryService } from '../ai/memory/service.ts';
import type { Packs } from '../ai/packs/door.ts';
import type { Prompts } from '../ai/prompts/door.ts';
import type { GoalService } from '../learning/goals/service.ts';
import type { ProposalService } from '../learning/proposals/service.ts';
import type { LegacyCapability as Capability, CapabilitySettings } from '../legacy.ts';
import type { Workflows } from '../running/workflows/door.ts';
import { AGENT_FIXTURES } from './agent-fixtures.ts';
import { AGENT_PACK } from './agent-pack.ts';
import { CHAIN_PACK } from './chain-pack.ts';
import { commitmentFire } from './commitment-fire.ts';
import { draftProposal } from './draft-proposal.ts';
import { FIXTURES, FOREIGN_MEMORY, MCP_FIXTURE } from './fixtures.ts';
import { forceExpire } from './force-expire.ts';
import { heartbeatTick } from './heartbeat-tick.ts';
import { memoryConsolidate } from './memory-consolidate.ts';
import { mockAiSeams } from './mock-ai.ts';
import { CONFORMANCE_NODES } from './nodes/index.ts';
import { promptSeams } from './prompt-seams.ts';
import { PROMPT_TEMPLATES } from './prompt-templates.ts';
import { giveSamples } from './samples.ts';
import { schedulingTick } from './scheduling-tick.ts';
import { seams } from './seams.ts';
import { testSurface } from './surface.ts';

export interface Fitted {
  readonly workflows: Workflows;
  readonly prompts: Prompts;
  readonly packs: Packs;
  readonly proposals: ProposalService;
  readonly goals: GoalService;
  readonly memory: MemoryService;
}

const FOREIGNER = { tenant: 'conformance-another-tenant', runId: 'none', nodeId: 'none', effectId: 'seed' };

function seeded({ mcpServers }: Pick<CapabilitySettings, 'mcpServers'>): readonly WorkflowDefinition[] {
  return [...FIXTURES, ...AGENT_FIXTURES, ...(mcpServers.length > 0 ? [MCP_FIXTURE] : [])];
}

/** What conformance suites need and nobody else should have; mounted by the conformance switch alone. */
export const conformance: Capability<'conformance', Fitted> = {
  name: 'conformance',
  advertise: (settings) => ({ fixtures: seeded(settings).map(({ id }) => id), conformance: { mockAgent: true } }),
  nodes: () => CONFORMANCE_NODES,
  service: (_host, services: Fitted) => services,
  routes: [
    ...seams,
    ...promptSeams,
    ...mockAiSeams,
    testSurface,
    forceExpire,
    draftProposal,
    schedulingTick,
    heartbeatTick,
    commitmentFire,
    memoryConsolidate,
  ],
  prepare: async ({ runtime, settings }, { workflows, prompts, packs, memory, proposals, goals }) => {
    await giveSamples(settings, { proposals, goals });
    await memory.perform(FOREIGNER, { op: 'put', memoryRef: FOREIGN_MEMORY, content: 'not yours', tags: [] });
    const seed = async (id: string, decide: Decide<unknown>): Promise<void> => {
      const outcome = await perform(runtime, decide);
      if (isRefusal(outcome)) throw new Error(`fixture ${id}: ${outcome.message}`);
    };
    for (const pack of [CHAIN_PACK, AGENT_PACK]) await seed(pack.name, () => packs.installShared(pack));
    for (const prompt of PROMPT_TEMPLATES) await seed(prompt.templateId, () => prompts.installShared(prompt));
    for (const workflow of seeded(settings)) await seed(workflow.id, () => workflows.registerShared(workflow));
  },
};
