import type { ToolDescriptor } from '../../protocol/ai/tools.ts';
import { TOOL_SOURCES } from '../../protocol/format/choices.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { table } from '../text.ts';
import { showing } from './named-things.ts';

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'The tools that agents may use, by the names that allow-lists have for them',
  flags: { '--source <source>': `one of ${TOOL_SOURCES.join(', ')}` },
  example: 'tools list --source workflow',
  async run(context, { options }) {
    const source = TOOL_SOURCES.find((known) => known === options.source);
    if (options.source && !source) throw new UsageError(`--source is one of ${TOOL_SOURCES.join(', ')}.`);
    const listed = await (await context.client()).listTools(source ? { source } : {});
    const row = ({ toolId, source: from, safetyTier, egress, title, description }: ToolDescriptor) => [
      toolId,
      from,
      safetyTier,
      egress,
      title ?? description,
    ];
    context.show(
      listed,
      () => table(['TOOL', 'SOURCE', 'TIER', 'EGRESS', 'TITLE'], listed.tools.map(row)),
      () => listed.tools.map(({ toolId }) => toolId),
    );
    return EXIT.done;
  },
};

const get = showing(
  { group: 'tools', takes: '<toolId>', exampleId: 'capstan.workflow:look-up' },
  'A tool: what it takes, and what a call of it does',
  (client, id) => client.getTool(id),
);

export const tools: CommandGroup = {
  name: 'tools',
  summary: 'See the tools that agents may be allowed',
  commands: [list, get],
};
