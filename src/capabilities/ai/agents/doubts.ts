import type { Runtime } from '../../../runtime/runtime.ts';
import { findTool } from '../../../runtime/tools.ts';
import type { Visibility } from '../../../store/log.ts';
import { withTimeout } from '../../../system/clock.ts';
import { doubtsOfNodes, type WorkflowDoubt } from '../../running/workflows/door.ts';
import type { Packs } from '../packs/door.ts';

/** How long an author waits for a tool's server; a tool that it does not tell of in time is no doubt. */
const LOOK_MS = 1_000;
const TOOLS_MAX = 128;

/** Agents and tools that nodes name and that are not installed; a pack may bring them later. */
export function unknownAgents(
  runtime: Pick<Runtime, 'tools' | 'clock'>,
  { packs }: { readonly packs: Pick<Packs, 'agent'> },
): WorkflowDoubt {
  const isMissing = async (user: Visibility, name: string): Promise<boolean> => {
    const look = findTool(runtime.tools, user, name).then((tool) => ({ tool }));
    const seen = await withTimeout(runtime.clock, LOOK_MS, look);
    return seen !== undefined && seen.tool === undefined;
  };
  return (user, definition) =>
    doubtsOfNodes(definition, async ({ typeId, config, agent }) => {
      const agentId = agent?.agentId ?? config.agentId;
      const isRun = typeId === 'core.agents.run';
      const named = isRun && Array.isArray(config.tools) ? config.tools.map(String).slice(0, TOOLS_MAX) : [];
      const missing = await Promise.all(named.map((name) => isMissing(user, name)));
      const strange = named.filter((_name, index) => missing[index]);
      const hasAgent = !isRun || typeof agentId !== 'string' || (await packs.agent(user, agentId)) !== undefined;
      return [
        ...(hasAgent ? [] : [{ path: agent ? '.agent.agentId' : '.config.agentId', message: noAgent(agentId) }]),
        ...strange.map((name) => ({
          path: `.config.tools.${named.indexOf(name)}`,
          message: `There is no tool ${JSON.stringify(name)}. See \`capstan tools list\`.`,
        })),
      ];
    });
}

function noAgent(agentId: unknown): string {
  return `There is no agent ${JSON.stringify(agentId)} yet. Install its pack before the first run.`;
}
