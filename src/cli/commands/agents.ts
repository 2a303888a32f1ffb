import type { AgentInventoryEntry } from '../../protocol/ai/agents.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT } from '../exit.ts';
import { table } from '../text.ts';
import { showing } from './named-things.ts';

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

const get = showing(
  { group: 'agents', takes: '<agentId>', exampleId: 'vendor.acme.support.triage' },
  'An agent: who it is, which tools it may use, and when it asks a person',
  (client, id) => client.getAgent(id),
);

export const agents: CommandGroup = {
  name: 'agents',
  summary: 'See the agents that packs bring',
  commands: [list, get],
};
