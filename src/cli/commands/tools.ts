import type { ToolDescriptor } from '../../protocol/ai/tools.ts';
import { TOOL_SOURCES } from '../../protocol/format/choices.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { table } from '../text.ts';
import { getCommand } from './resource-commands.ts';

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List the tools that can be put on the allow-list of an agent',
  flags: {
    '--source <source>': `one of ${TOOL_SOURCES.join(', ')}`,
    '--compact': 'only what a model needs to choose a tool, with simpler schemas',
  },
  example: 'tools list --source workflow',
  async run(context, { options }) {
    const source = TOOL_SOURCES.find((known) => known === options.source);
    if (options.source && !source) throw new UsageError(`--source must be one of ${TOOL_SOURCES.join(', ')}.`);
    const listed = await (await context.client()).listTools({
      ...(source ? { source } : {}),
      ...(options.compact ? { view: 'compact' } : {}),
    });
    const row = ({ toolId, source: origin, safetyTier, egress, title, description }: ToolDescriptor) => [
      toolId,
      origin,
      safetyTier,
      egress,
      title ?? description,
    ];
    context.show(
      listed,
      () =>
        table(
          ['TOOL', 'SOURCE', 'TIER', 'EGRESS', 'TITLE'],
          listed.tools.map(row),
          'No tools. Workflows, node types and MCP servers are offered as tools.',
        ),
      () => listed.tools.map(({ toolId }) => toolId),
    );
    return EXIT.done;
  },
};

const get = getCommand(
  { group: 'tools', takes: '<toolId>', exampleId: 'capstan.workflow:support-triage' },
  'Show a tool: its inputs and its effects',
  (client, id) => client.getTool(id),
);

/** `capstan tools`: read-only, because tools come from workflows, packs and MCP servers. */
export const tools: CommandGroup = {
  name: 'tools',
  summary: 'Show the tools that agents can use',
  commands: [list, get],
};
