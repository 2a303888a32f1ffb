import type { PromptTemplate } from '../../protocol/ai/prompts.ts';
import { defined } from '../../protocol/format/json.ts';
import type { CommandGroup, CommandSpec, Context } from '../command.ts';
import { EXIT } from '../exit.ts';
import { propertyLines, sanitize, table } from '../text.ts';
import { inputsFromOptions, parseJsonObject, stringOption } from '../values.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';
import { deleteCommand } from './resource-commands.ts';

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List prompt templates, each in its latest version',
  flags: { '--tag <tag>': 'templates with this tag', ...PAGE_FLAGS },
  example: 'prompts list',
  async run(context, { options }) {
    const page = await (await context.client()).listPromptTemplates({
      ...defined({ tag: stringOption(options.tag) }),
      ...pageQuery(options),
    });
    const row = ({ templateId, version, kind, meta, name }: PromptTemplate) => [
      templateId,
      version,
      kind,
      meta?.source,
      name,
    ];
    context.show(
      page,
      () => [
        ...table(
          ['TEMPLATE', 'VERSION', 'KIND', 'SOURCE', 'NAME'],
          page.items.map(row),
          'No prompt templates. Make one with: capstan prompts create <file>',
        ),
        ...nextPageHint(page),
      ],
      () => page.items.map(({ templateId }) => templateId),
    );
    return EXIT.done;
  },
};

const get: CommandSpec = {
  name: 'get',
  takes: '<templateId>',
  summary: 'Show a prompt template (default: the latest version)',
  flags: { '--template-version <version>': 'show this version' },
  example: 'prompts get support.reply --template-version 1.2.0',
  async run(context, { args: [templateId = ''], options }) {
    const query = defined({ version: stringOption(options.templateVersion) });
    const template = await (await context.client()).getPromptTemplate(templateId, query);
    const { text: body, ...rest } = template;
    context.show(template, () => [...propertyLines(rest), '', ...body.split('\n').map(sanitize)]);
    return EXIT.done;
  },
};

const create: CommandSpec = {
  name: 'create',
  takes: '<file>',
  summary: 'Create a prompt template from a JSON file',
  example: 'prompts create reply.json',
  async run(context, { args: [file = ''] }) {
    const created = await (await context.client()).createPromptTemplate(await readTemplate(context, file));
    showVersion(context, created);
    return EXIT.done;
  },
};

const update: CommandSpec = {
  name: 'update',
  takes: '<file>',
  summary: 'Add a newer version of a prompt template from a JSON file',
  example: 'prompts update reply.json',
  async run(context, { args: [file = ''] }) {
    const template = await readTemplate(context, file);
    showVersion(context, await (await context.client()).updatePromptTemplate(template.templateId, template));
    return EXIT.done;
  },
};

/** Reads a template file. The host validates it and reports problems with their path. */
async function readTemplate({ terminal }: Context, file: string): Promise<PromptTemplate> {
  const source = file === '-' ? file : `@${file}`;
  return (await parseJsonObject(terminal, source, file)) as PromptTemplate;
}

function showVersion(context: Context, template: PromptTemplate): void {
  context.show(
    template,
    () => [`${template.templateId}@${template.version}`],
    () => [template.templateId],
  );
}

const remove = deleteCommand(
  { group: 'prompts', takes: '<templateId>', exampleId: 'support.reply' },
  'Delete a prompt template with all its versions; runs that have started can still use them',
  (client, id) => client.deletePromptTemplate(id),
);

const render: CommandSpec = {
  name: 'render',
  takes: '<templateId>',
  summary: 'Render a prompt template with values, without calling a model',
  flags: {
    '--set <name=value...>': 'one value',
    '--input <json>': 'values: a JSON object, @file, or - for standard input',
  },
  example: 'prompts render support.reply --set name=Ada',
  async run(context, { args: [templateId = ''], options }) {
    const variables = await inputsFromOptions(context, options);
    const rendered = await (await context.client()).renderPromptTemplate({ ref: `prompt:${templateId}`, variables });
    context.show(rendered, () => rendered.composed.split('\n').map(sanitize));
    return EXIT.done;
  },
};

/** `capstan prompts`. */
export const prompts: CommandGroup = {
  name: 'prompts',
  summary: 'Manage prompt templates',
  commands: [list, get, create, update, remove, render],
};
