import type { AgentInventoryEntry } from '../../protocol/ai/agents.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT } from '../exit.ts';
import { table } from '../text.ts';
import { getCommand } from './resource-commands.ts';

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List the agents that you may use',
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
      () =>
        table(
          ['AGENT', 'CLASS', 'PACK', 'LABEL', 'MISSING'],
          inventory.agents.map(row),
          'No agents. Install a pack that has some with: capstan packs install <file>',
        ),
      () => inventory.agents.map(({ agentId }) => agentId),
    );
    return EXIT.done;
  },
};

const get = getCommand(
  { group: 'agents', takes: '<agentId>', exampleId: 'vendor.example.triage.sorter' },
  'Show an agent: its persona, its tools and when it escalates to a person',
  (client, id) => client.getAgent(id),
);

/** `capstan agents`: read-only, because agents are installed with their pack. */
export const agents: CommandGroup = {
  name: 'agents',
  summary: 'Show the agents from installed packs',
  commands: [list, get],
};
