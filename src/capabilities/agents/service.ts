import type { AgentInventory, AgentInventoryEntry } from '../../protocol/agents.ts';
import type { Caller, Host } from '../capability.ts';
import type { PackService } from '../packs/service.ts';
import { entryOf } from './inventory.ts';

const AGENTS_MAX = 1_000;

export type AgentService = ReturnType<typeof agentService>;

export function agentService({ advertises }: Host, { packs }: { readonly packs: PackService }) {
  return {
    async list({ subject }: Caller): Promise<AgentInventory> {
      const found = await packs.agents(subject, AGENTS_MAX);
      return { agents: found.map((agent) => entryOf(agent, advertises)), total: found.length };
    },

    async find({ subject }: Caller, agentId: string): Promise<AgentInventoryEntry | undefined> {
      const agent = await packs.agent(subject, agentId);
      return agent && entryOf(agent, advertises);
    },
  };
}
