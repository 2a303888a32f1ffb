import type { AgentInventoryEntry } from '../../protocol/agents.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT } from '../exit.ts';
import { facts, table } from '../text.ts';

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'The agents that you may use, by their ids',
  example: 'agents list',
  async run(context) {
    const inventory = await (await context.client()).listAgents();
    const row = ({ agentId, modelClass, packName, packVersion, label, degraded = [] }: AgentInventoryEntry) => [
      agentId,
      modelClass,
      `${packName}@${packVersion}`,
      label,
      degraded.join(' '),
    ];
    context.show(
      inventory,
      () => table(['AGENT', 'CLASS', 'PACK', 'LABEL', 'MISSING'], inventory.agents.map(row)),
      () => inventory.agents.map(({ agentId }) => agentId),
    );
    return EXIT.done;
  },
};

const get: CommandSpec = {
  name: 'get',
  takes: '<agentId>',
  summary: 'An agent: who it is, which tools it may use, and when it asks a person',
  example: 'agents get vendor.acme.support.triage',
  async run(context, { args: [agentId = ''] }) {
    const agent = await (await context.client()).getAgent(agentId);
    context.show(agent, () => facts(agent));
    return EXIT.done;
  },
};

export const agents: CommandGroup = {
  name: 'agents',
  summary: 'See the agents that packs bring',
  commands: [list, get],
};
