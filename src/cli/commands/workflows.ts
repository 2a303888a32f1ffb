import type { WorkflowDefinition } from '../../protocol/running/workflows.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { withWorkflow } from '../nearest-workflow.ts';
import { table } from '../text.ts';
import { graphLines } from '../workflow-graph.ts';
import { lineOf } from '../workflow-warnings.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';
import { deleteCommand } from './resource-commands.ts';
import { diff, pull, push } from './workflow-folders.ts';

/** Imported late: the check loads the engine and all node types, which would slow down the other commands. */
const readFile = async (path: string) => (await import('../workflow-file.ts')).readWorkflowFile(path);

const validate: CommandSpec = {
  name: 'validate',
  takes: '<files...>',
  summary: 'Check workflow files (JSON or YAML) with the rules of a host, without a host',
  example: 'workflows validate examples/support-triage.json',
  async run(context, { args: files }) {
    const checked = await Promise.all(files.map(async (file) => ({ file, ...(await readFile(file)) })));
    const results = checked.map(({ file, problems, warnings }) => ({
      file,
      isValid: problems.length === 0,
      problems,
      warnings,
    }));
    context.show(results, () =>
      results.flatMap(({ file, isValid, problems, warnings }) => [
        `${file}: ${isValid ? context.paint('green', 'valid') : context.paint('red', 'not valid')}`,
        ...problems.map((problem) => `  ${lineOf(problem)}`),
        ...warnings.map((warning) => `  ${context.paint('yellow', `warning: ${lineOf(warning)}`)}`),
      ]),
    );
    return results.every(({ isValid }) => isValid) ? EXIT.done : EXIT.refused;
  },
};

const register: CommandSpec = {
  name: 'register',
  takes: '<files...>',
  summary: 'Register workflows or new versions of them; an unchanged workflow keeps its version',
  example: 'workflows register triage.json',
  async run(context, { args: files }) {
    const client = await context.client();
    for (const definition of await Promise.all(files.map(readDefinition))) {
      const registered = await client.registerWorkflow(definition);
      const { id, registeredVersion, warnings = [] } = registered;
      context.show(registered, () => [
        ...warnings.map((warning) => context.paint('yellow', `warning: ${lineOf(warning)}`)),
        `Registered ${id}, version ${registeredVersion}. Run it with: capstan runs start ${id}`,
      ]);
    }
    return EXIT.done;
  },
};

async function readDefinition(file: string): Promise<WorkflowDefinition> {
  const { definition, problems } = await readFile(file);
  if (definition) return definition;
  const [first, ...others] = problems;
  const more = others.length > 0 ? ` \`capstan workflows validate ${file}\` shows ${others.length} more.` : '';
  const message = first!.message.replace(/(?<![.?!])$/, '.');
  throw new UsageError(`${file} is not valid: ${first!.path}: ${message}${more}`);
}

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List the workflows that you may run, last changed first',
  flags: PAGE_FLAGS,
  example: 'workflows list',
  async run(context, { options }) {
    const page = await (await context.client()).listWorkflows(pageQuery(options));
    const row = (workflow: (typeof page.items)[number]) => [
      workflow.id,
      workflow.registeredVersion,
      workflow.nodes,
      workflow.shared ? 'yes' : '',
      workflow.name,
    ];
    context.show(
      page,
      () => [...table(['WORKFLOW', 'VERSION', 'NODES', 'SHARED', 'NAME'], page.items.map(row)), ...nextPageHint(page)],
      () => page.items.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const show: CommandSpec = {
  name: 'show',
  aliases: ['get'],
  takes: '<workflowId>',
  summary: 'Show a workflow as a graph, or its definition with --json',
  example: 'workflows show support-triage',
  async run(context, { args: [workflowId = ''] }) {
    const client = await context.client();
    const definition = await withWorkflow(client, workflowId, () => client.getWorkflow(workflowId));
    context.show(definition, () => graphLines(definition, context.paint));
    return EXIT.done;
  },
};

const remove = deleteCommand(
  { group: 'workflows', takes: '<workflowId>', exampleId: 'support-triage' },
  'Delete a workflow; runs that have started continue',
  (client, id) => withWorkflow(client, id, () => client.deleteWorkflow(id)),
);

/** `capstan workflows`. */
export const workflows: CommandGroup = {
  name: 'workflows',
  summary: 'Check, register and show workflows',
  commands: [validate, register, list, show, remove, push, diff, pull],
};
