import type { WorkflowDefinition } from '../../protocol/running/workflows.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { harmless, table } from '../text.ts';
import { graphLines } from '../workflow-graph.ts';
import { removal } from './named-things.ts';
import { morePages, PAGE_FLAGS, pageQuery } from './pages.ts';

/** Checking takes the engine and all node types, which other commands need not wait for. */
const readFile = async (path: string) => (await import('../workflow-file.ts')).readWorkflowFile(path);

const validate: CommandSpec = {
  name: 'validate',
  takes: '<files...>',
  summary: 'Check definitions as a host does when they are registered; no host is needed for it',
  example: 'workflows validate examples/support-triage.json',
  async run(context, { args: files }) {
    const checked = await Promise.all(files.map(async (file) => ({ file, ...(await readFile(file)) })));
    const results = checked.map(({ file, problems }) => ({ file, isValid: problems.length === 0, problems }));
    context.show(results, () =>
      results.flatMap(({ file, isValid, problems }) => [
        `${file}: ${isValid ? context.paint('green', 'valid') : context.paint('red', 'not valid')}`,
        ...problems.map(({ path, message }) => `  ${harmless(path)}${path === '' ? '' : ': '}${harmless(message)}`),
      ]),
    );
    return results.every(({ isValid }) => isValid) ? EXIT.done : EXIT.refused;
  },
};

const register: CommandSpec = {
  name: 'register',
  takes: '<files...>',
  summary: 'Register definitions, or new versions of them; what is registered already stays as it is',
  example: 'workflows register triage.json',
  async run(context, { args: files }) {
    const client = await context.client();
    for (const definition of await Promise.all(files.map(definitionIn))) {
      const registered = await client.registerWorkflow(definition);
      const { id, registeredVersion } = registered;
      context.show(registered, () => [`${id}, version ${registeredVersion}. Run it with: capstan runs start ${id}`]);
    }
    return EXIT.done;
  },
};

async function definitionIn(file: string): Promise<WorkflowDefinition> {
  const { definition, problems } = await readFile(file);
  if (definition) return definition;
  const [first] = problems;
  throw new UsageError(
    `${file} is not valid: ${first!.path} ${first!.message}. See \`capstan workflows validate ${file}\`.`,
  );
}

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'The workflows that you may run, what was changed last first',
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
      () => [...table(['WORKFLOW', 'VERSION', 'NODES', 'SHARED', 'NAME'], page.items.map(row)), ...morePages(page)],
      () => page.items.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const show: CommandSpec = {
  name: 'show',
  aliases: ['get'],
  takes: '<workflowId>',
  summary: 'A workflow as a graph; --json for its definition',
  example: 'workflows show support-triage',
  async run(context, { args: [workflowId = ''] }) {
    const definition = await (await context.client()).getWorkflow(workflowId);
    context.show(definition, () => graphLines(definition, context.paint));
    return EXIT.done;
  },
};

const remove = removal(
  { group: 'workflows', takes: '<workflowId>', exampleId: 'support-triage' },
  'Remove a workflow; runs that have begun go on',
  (client, id) => client.deleteWorkflow(id),
);

export const workflows: CommandGroup = {
  name: 'workflows',
  summary: 'Check, register and look at workflows',
  commands: [validate, register, list, show, remove],
};
