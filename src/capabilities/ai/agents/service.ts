import type { AgentInventory, AgentInventoryEntry } from '../../../protocol/ai/agents.ts';
import type { SeamDrivers } from '../../../runtime/effects/seams.ts';
import { findTool, toolFacts } from '../../../runtime/tools.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import type { Packs } from '../packs/door.ts';
import { entryOf } from './inventory.ts';

const AGENTS_MAX = 1_000;

export type AgentService = ReturnType<typeof agentService>;

export function agentService({ runtime, advertises }: Host, { packs }: { readonly packs: Packs }) {
  return {
    /** Who is to do something, and with what. */
    seam: (async ({ agentId, version, tools: asked }, firing) => {
      const agent = agentId === undefined ? undefined : await packs.agent(firing, agentId, version);
      const listed = agentId === undefined ? (asked ?? []) : (agent?.manifest.toolAllowlist ?? []);
      const allowed = [...new Set(listed)].filter((name) => asked?.includes(name) ?? true);
      const found = await Promise.all(allowed.map((name) => findTool(runtime.tools, firing, name)));
      return { agent: agent ?? null, allowed, tools: found.flatMap((tool) => (tool ? [toolFacts(tool)] : [])) };
    }) satisfies SeamDrivers['agent'],

    async list({ subject }: Caller): Promise<AgentInventory> {
      const found = await packs.agents(subject, AGENTS_MAX);
      const isHere = remembering(advertises);
      return { agents: found.map((agent) => entryOf(agent, isHere)), total: found.length };
    },

    async find({ subject }: Caller, agentId: string): Promise<AgentInventoryEntry | undefined> {
      const agent = await packs.agent(subject, agentId);
      return agent && entryOf(agent, advertises);
    },
  };
}

/** Many agents need the same few things. */
function remembering(ask: (capability: string) => boolean): (capability: string) => boolean {
  const known = new Map<string, boolean>();
  return (capability) => {
    const isHere = known.get(capability) ?? ask(capability);
    known.set(capability, isHere);
    return isHere;
  };
}
