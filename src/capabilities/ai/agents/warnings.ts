import { nearest } from '../../../protocol/format/nearest.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { findTool } from '../../../runtime/tools.ts';
import type { Visibility } from '../../../store/log.ts';
import { withTimeout } from '../../../system/clock.ts';
import { nodeWarnings, type WorkflowCheck } from '../../running/workflows/door.ts';
import type { Packs } from '../packs/door.ts';

/** How long an author waits for a tool's server; a tool that it does not list in time gets no warning. */
const LOOK_MS = 1_000;
const TOOLS_MAX = 128;
/** More would make a misspelt name slow. */
const COMPARED_MAX = 500;

/** Agents and tools that nodes name and that are not installed; a pack may bring them later. */
export function unknownAgents(
  runtime: Pick<Runtime, 'tools' | 'clock'>,
  { packs }: { readonly packs: Pick<Packs, 'agent' | 'agents'> },
): WorkflowCheck {
  const isMissing = async (user: Visibility, name: string): Promise<boolean> => {
    const look = findTool(runtime.tools, user, name).then((tool) => ({ tool }));
    const seen = await withTimeout(runtime.clock, LOOK_MS, look);
    return seen !== undefined && seen.tool === undefined;
  };
  /** The names of all tools that are listed in time. */
  const toolNames = async (user: Visibility): Promise<string[]> => {
    const lists = await Promise.all(
      runtime.tools.map((source) => withTimeout(runtime.clock, LOOK_MS, source.list(user))),
    );
    return lists.flatMap((tools) => (tools ?? []).map(({ name }) => name)).slice(0, COMPARED_MAX);
  };
  return (user, definition) =>
    nodeWarnings(definition, async ({ typeId, config, agent }) => {
      const agentId = agent?.agentId ?? config.agentId;
      const isRun = typeId === 'core.agents.run';
      const named = isRun && Array.isArray(config.tools) ? config.tools.map(String).slice(0, TOOLS_MAX) : [];
      const missing = await Promise.all(named.map((name) => isMissing(user, name)));
      const strange = named.filter((_name, index) => missing[index]);
      const hasAgent = !isRun || typeof agentId !== 'string' || (await packs.agent(user, agentId)) !== undefined;
      const agentIds = hasAgent ? [] : (await packs.agents(user, COMPARED_MAX)).map(({ manifest }) => manifest.agentId);
      const toolIds = strange.length === 0 ? [] : await toolNames(user);
      return [
        ...(hasAgent
          ? []
          : [{ path: agent ? '.agent.agentId' : '.config.agentId', message: noAgent(agentId, agentIds) }]),
        ...strange.map((name) => ({ path: `.config.tools.${named.indexOf(name)}`, message: noTool(name, toolIds) })),
      ];
    });
}

function noAgent(agentId: string, known: readonly string[]): string {
  const meant = nearest(agentId, known);
  const advice =
    meant === undefined ? 'Install its pack before the first run.' : `Did you mean ${JSON.stringify(meant)}?`;
  return `There is no agent ${JSON.stringify(agentId)} yet. ${advice}`;
}

function noTool(name: string, known: readonly string[]): string {
  const meant = nearest(name, known);
  const advice = meant === undefined ? 'See `capstan tools list`.' : `Did you mean ${JSON.stringify(meant)}?`;
  return `There is no tool ${JSON.stringify(name)}. ${advice}`;
}
