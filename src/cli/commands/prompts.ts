import type { PromptTemplate } from '../../protocol/ai/prompts.ts';
import { defined } from '../../protocol/format/json.ts';
import type { CommandGroup, CommandSpec, Context } from '../command.ts';
import { EXIT } from '../exit.ts';
import { facts, harmless, table } from '../text.ts';
import { jsonObject, membersGiven, text } from '../values.ts';
import { removal } from './named-things.ts';
import { morePages, PAGE_FLAGS, pageQuery } from './pages.ts';

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'Prompt templates, each in its latest version',
  flags: { '--tag <tag>': 'those with this label', ...PAGE_FLAGS },
  example: 'prompts list',
  async run(context, { options }) {
    const page = await (await context.client()).listPromptTemplates({
      ...defined({ tag: text(options.tag) }),
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
      () => [...table(['TEMPLATE', 'VERSION', 'KIND', 'SOURCE', 'NAME'], page.items.map(row)), ...morePages(page)],
      () => page.items.map(({ templateId }) => templateId),
    );
    return EXIT.done;
  },
};

const get: CommandSpec = {
  name: 'get',
  takes: '<templateId>',
  summary: 'A prompt template, in its latest version unless another is named',
  flags: { '--template-version <version>': 'this version' },
  example: 'prompts get support.reply --template-version 1.2.0',
  async run(context, { args: [templateId = ''], options }) {
    const query = defined({ version: text(options.templateVersion) });
    const template = await (await context.client()).getPromptTemplate(templateId, query);
    const { text: body, ...rest } = template;
    context.show(template, () => [...facts(rest), '', ...body.split('\n').map(harmless)]);
    return EXIT.done;
  },
};

const create: CommandSpec = {
  name: 'create',
  takes: '<file>',
  summary: 'Add a prompt template from a JSON file',
  example: 'prompts create reply.json',
  async run(context, { args: [file = ''] }) {
    const made = await (await context.client()).createPromptTemplate(await templateIn(context, file));
    showVersion(context, made);
    return EXIT.done;
  },
};

const update: CommandSpec = {
  name: 'update',
  takes: '<file>',
  summary: 'Give a prompt template a later version, from a JSON file',
  example: 'prompts update reply.json',
  async run(context, { args: [file = ''] }) {
    const template = await templateIn(context, file);
    showVersion(context, await (await context.client()).updatePromptTemplate(template.templateId, template));
    return EXIT.done;
  },
};

/** The host checks it; what is wrong comes back with its place. */
async function templateIn({ terminal }: Context, file: string): Promise<PromptTemplate> {
  const source = file === '-' ? file : `@${file}`;
  return (await jsonObject(terminal, source, file)) as PromptTemplate;
}

function showVersion(context: Context, template: PromptTemplate): void {
  context.show(
    template,
    () => [`${template.templateId}@${template.version}`],
    () => [template.templateId],
  );
}

const remove = removal(
  { group: 'prompts', takes: '<templateId>', exampleId: 'support.reply' },
  'Remove a prompt template with all its versions; runs that have begun still find them',
  (client, id) => client.deletePromptTemplate(id),
);

const render: CommandSpec = {
  name: 'render',
  takes: '<templateId>',
  summary: 'What a prompt template comes to with some values, without calling a model',
  flags: { '--set <name=value...>': 'one value', '--input <json>': 'values: a JSON object, @file, or -' },
  example: 'prompts render support.reply --set name=Ada',
  async run(context, { args: [templateId = ''], options }) {
    const variables = await membersGiven(context.terminal, options);
    const rendered = await (await context.client()).renderPromptTemplate({ ref: `prompt:${templateId}`, variables });
    context.show(rendered, () => rendered.composed.split('\n').map(harmless));
    return EXIT.done;
  },
};

export const prompts: CommandGroup = {
  name: 'prompts',
  summary: 'Keep prompt templates',
  commands: [list, get, create, update, remove, render],
};
