import type { MemoryRecord } from '../../protocol/ai/memory.ts';
import { defined } from '../../protocol/format/json.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT } from '../exit.ts';
import { table } from '../text.ts';
import { confirm, text } from '../values.ts';
import { showing } from './named-things.ts';
import { morePages, PAGE_FLAGS, pageQuery } from './pages.ts';

/** Of longer ones a table shows the beginning. */
const SHOWN_CHARACTERS = 60;

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'What agents remember, newest first',
  flags: { '--ref <memoryRef>': 'of this memory', '--tag <tag>': 'that has this tag', ...PAGE_FLAGS },
  example: 'memory list --ref customers/A-1',
  async run(context, { options }) {
    const query = { ...defined({ memoryRef: text(options.ref), tag: text(options.tag) }), ...pageQuery(options) };
    const page = await (await context.client()).listMemory(query);
    const row = ({ id, memoryRef, createdAt, content }: MemoryRecord) => [
      id,
      memoryRef,
      createdAt,
      content.length > SHOWN_CHARACTERS ? `${content.slice(0, SHOWN_CHARACTERS)}…` : content,
    ];
    context.show(
      page,
      () => [...table(['ENTRY', 'MEMORY', 'SINCE', 'CONTENT'], page.items.map(row)), ...morePages(page)],
      () => page.items.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const get = showing(
  { group: 'memory', takes: '<memoryId>', exampleId: 'mem-0mw4x2c1h0001' },
  'Something that is remembered, and which run it is from',
  (client, id) => client.getMemory(id),
);

const remove: CommandSpec = {
  name: 'delete',
  takes: '<memoryId>',
  summary: 'Have one thing forgotten; what runs have read of it stays in their logs',
  flags: { '--yes': 'do not ask' },
  example: 'memory delete mem-0mw4x2c1h0001 --yes',
  async run(context, { args: [memoryId = ''], options }) {
    await confirm(context.terminal, options.yes === true, `Forget ${memoryId}?`);
    await (await context.client()).deleteMemory(memoryId);
    context.show(undefined, () => [`${memoryId} is forgotten.`]);
    return EXIT.done;
  },
};

const forget: CommandSpec = {
  name: 'forget',
  takes: '<memoryRef>',
  summary: 'Have everything of one memory forgotten',
  flags: { '--yes': 'do not ask' },
  example: 'memory forget customers/A-1 --yes',
  async run(context, { args: [memoryRef = ''], options }) {
    await confirm(context.terminal, options.yes === true, `Forget everything of ${memoryRef}?`);
    await (await context.client()).forgetMemory({ memoryRef });
    context.show(undefined, () => [`${memoryRef} is forgotten.`]);
    return EXIT.done;
  },
};

export const memory: CommandGroup = {
  name: 'memory',
  summary: 'See what agents remember, and have it forgotten',
  commands: [list, get, remove, forget],
};
