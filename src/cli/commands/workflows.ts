import { RefusedError } from '../../client/index.ts';
import type { WorkflowDefinition } from '../../protocol/running/workflows.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { withWorkflow } from '../nearest-workflow.ts';
import { startCommand } from '../start-command.ts';
import { table } from '../text.ts';
import { graphLines } from '../workflow-graph.ts';
import { lineOf } from '../workflow-warnings.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';
import { deleteCommand } from './resource-commands.ts';
import { diff, pull, push } from './workflow-folders.ts';

const validate: CommandSpec = {
  name: 'validate',
  takes: '<paths...>',
  summary: 'Check workflow files (JSON or YAML), folders or projects; files are checked by the host if there is one',
  example: 'workflows validate examples/support-triage.json',
  async run(context, { args: paths }) {
    // Imported late: the check loads the engine and all node types, which would slow down the other commands.
    const { checkPath, definitionCheck } = await import('../workflow-check.ts');
    const check = await definitionCheck(context);
    const checked = (await Promise.all(paths.map((path) => checkPath(context, check, path)))).flat();
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
    const read = await Promise.all(files.map(async (file) => ({ file, definition: await readDefinition(file) })));
    for (const { file, definition } of read) {
      const registered = await ofFile(file, () => client.registerWorkflow(definition));
      const { id, registeredVersion, warnings = [] } = registered;
      context.show(registered, () => [
        ...warnings.map((warning) => context.paint('yellow', `warning: ${lineOf(warning)}`)),
        `Registered ${id}, version ${registeredVersion}. Run it with: capstan ${startCommand(definition)}`,
      ]);
    }
    return EXIT.done;
  },
};

/** The definition in a file. The host knows which node types it has; here only text and fields are looked at. */
async function readDefinition(file: string): Promise<WorkflowDefinition> {
  const { readWorkflowFile } = await import('../workflow-file.ts');
  const read = await readWorkflowFile(file);
  if (!('problems' in read)) return read;
  const [first, ...others] = read.problems;
  const more = others.length > 0 ? ` \`capstan workflows validate ${file}\` shows ${others.length} more.` : '';
  throw new UsageError(`${file} is not valid: ${first!.path}: ${sentence(first!.message)}${more}`);
}

function sentence(message: string): string {
  return message.replace(/(?<![.?!])$/, '.');
}

/** Does something with a file; what the host refuses it for gets the name of the file. */
async function ofFile<T>(file: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof RefusedError) || error.code !== 'validation_error') throw error;
    const { status, code, message, details } = error;
    throw new RefusedError({ status, code, message: `${file} is not valid: ${sentence(message)}`, details });
  }
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
      () => [
        ...table(
          ['WORKFLOW', 'VERSION', 'NODES', 'SHARED', 'NAME'],
          page.items.map(row),
          'No workflows. Register one with: capstan workflows register <file>',
        ),
        ...nextPageHint(page),
      ],
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
