import type { MemoryRecord } from '../../protocol/ai/memory.ts';
import { defined } from '../../protocol/format/json.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT } from '../exit.ts';
import { table } from '../text.ts';
import { confirm, stringOption } from '../values.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';
import { getCommand } from './resource-commands.ts';

/** Longer entries are cut in the table. */
const SHOWN_CHARACTERS = 60;

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List memory entries of agents, newest first',
  flags: { '--ref <memoryRef>': 'entries of this memory', '--tag <tag>': 'entries with this tag', ...PAGE_FLAGS },
  example: 'memory list --ref customers/A-1',
  async run(context, { options }) {
    const query = {
      ...defined({ memoryRef: stringOption(options.ref), tag: stringOption(options.tag) }),
      ...pageQuery(options),
    };
    const page = await (await context.client()).listMemory(query);
    const row = ({ id, memoryRef, createdAt, content }: MemoryRecord) => [
      id,
      memoryRef,
      createdAt,
      content.length > SHOWN_CHARACTERS ? `${content.slice(0, SHOWN_CHARACTERS)}…` : content,
    ];
    context.show(
      page,
      () => [
        ...table(
          ['ENTRY', 'MEMORY', 'CREATED', 'CONTENT'],
          page.items.map(row),
          'Nothing is remembered. Agents and memory nodes of workflows write here.',
        ),
        ...nextPageHint(page),
      ],
      () => page.items.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const get = getCommand(
  { group: 'memory', takes: '<memoryId>', exampleId: 'mem-0mw4x2c1h0001' },
  'Show a memory entry and the run that wrote it',
  (client, id) => client.getMemory(id),
);

const remove: CommandSpec = {
  name: 'delete',
  takes: '<memoryId>',
  summary: 'Delete one memory entry; what runs have read stays in their logs',
  flags: { '--yes': 'skip the confirmation' },
  example: 'memory delete mem-0mw4x2c1h0001 --yes',
  async run(context, { args: [memoryId = ''], options }) {
    await confirm(context.terminal, options.yes === true, `Delete ${memoryId}?`);
    await (await context.client()).deleteMemory(memoryId);
    context.show(undefined, () => [`Deleted ${memoryId}.`]);
    return EXIT.done;
  },
};

const forget: CommandSpec = {
  name: 'forget',
  takes: '<memoryRef>',
  summary: 'Delete all entries of one memory',
  flags: { '--yes': 'skip the confirmation' },
  example: 'memory forget customers/A-1 --yes',
  async run(context, { args: [memoryRef = ''], options }) {
    await confirm(context.terminal, options.yes === true, `Delete all entries of ${memoryRef}?`);
    await (await context.client()).forgetMemory({ memoryRef });
    context.show(undefined, () => [`Deleted all entries of ${memoryRef}.`]);
    return EXIT.done;
  },
};

/** `capstan memory`. */
export const memory: CommandGroup = {
  name: 'memory',
  summary: 'Read and delete the memory of agents',
  commands: [list, get, remove, forget],
};
