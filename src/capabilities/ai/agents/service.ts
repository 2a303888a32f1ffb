import type { AgentInventory, AgentInventoryEntry } from '../../../protocol/ai/agents.ts';
import type { SeamDrivers } from '../../../runtime/effects/seams.ts';
import { findAvailable, findTool, toolFacts } from '../../../runtime/tools.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Host } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import type { PackedAgent, Packs } from '../packs/door.ts';
import type { Agents } from './door.ts';
import { entryOf } from './inventory.ts';

const AGENTS_MAX = 1_000;

/** Agents of packs, as nodes use them and as people list them. */
export class AgentService implements Agents {
  readonly #host: Pick<Host, 'runtime' | 'advertises'>;
  readonly #packs: Pick<Packs, 'agent' | 'agents'>;

  constructor(host: Pick<Host, 'runtime' | 'advertises'>, { packs }: { packs: Pick<Packs, 'agent' | 'agents'> }) {
    this.#host = host;
    this.#packs = packs;
  }

  readonly seam: SeamDrivers['agent'] = async ({ agentId, version, tools: asked }, firing) => {
    const agent = agentId === undefined ? undefined : await this.#packs.agent(firing, agentId, version);
    const listed = agentId === undefined ? (asked ?? []) : (agent?.manifest.toolAllowlist ?? []);
    const allowed = [...new Set(listed)].filter((name) => asked?.includes(name) ?? true);
    const found = await Promise.all(allowed.map((name) => findTool(this.#host.runtime.tools, firing, name)));
    return { agent: agent ?? null, allowed, tools: found.flatMap((tool) => (tool ? [toolFacts(tool)] : [])) };
  };

  async list({ subject }: Caller): Promise<AgentInventory> {
    const found = await this.#packs.agents(subject, AGENTS_MAX);
    const isAdvertised = cached(this.#host.advertises);
    const hasTool = await this.#hasTool(subject, found);
    return { agents: found.map((agent) => entryOf(agent, { isAdvertised, hasTool })), total: found.length };
  }

  async find({ subject }: Caller, agentId: string): Promise<AgentInventoryEntry | undefined> {
    const agent = await this.#packs.agent(subject, agentId);
    if (!agent) return undefined;
    return entryOf(agent, { isAdvertised: this.#host.advertises, hasTool: await this.#hasTool(subject, [agent]) });
  }

  /** Each name is looked up once, however many agents have it. */
  async #hasTool(user: Visibility, agents: readonly PackedAgent[]): Promise<(name: string) => boolean> {
    const names = [...new Set(agents.flatMap(({ manifest }) => manifest.toolAllowlist ?? []))];
    const found = await Promise.all(names.map((name) => findAvailable(this.#host.runtime, user, name)));
    const known = new Set(names.filter((_name, index) => found[index]));
    return (name) => known.has(name);
  }
}

/** Asks once per capability: the discovery document is built anew for each question, and agents need the same few. */
function cached(advertises: Host['advertises']): Host['advertises'] {
  const known = new Map<string, boolean>();
  return (capability) => {
    const isAdvertised = known.get(capability) ?? advertises(capability);
    known.set(capability, isAdvertised);
    return isAdvertised;
  };
}
