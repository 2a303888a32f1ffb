import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Client, RefusedError } from '../../client/index.ts';
import { canonicalJson, isObject } from '../../protocol/format/json.ts';
import type { WorkflowDefinition, WorkflowSummary } from '../../protocol/running/workflows.ts';
import type { CommandSpec, Context } from '../command.ts';
import { EXIT } from '../exit.ts';
import { startCommand } from '../start-command.ts';
import { sanitize } from '../text.ts';
import { lineOf } from '../workflow-warnings.ts';

/** Imported late: it loads the engine and projects, which would slow down the other commands. */
const workflowsIn = async (folder: string) => (await import('../workflow-folder.ts')).workflowsIn(folder);

/** `capstan workflows push`. */
export const push: CommandSpec = {
  name: 'push',
  takes: '[folder]',
  summary: 'Register the workflows of a project, or of a folder of JSON files; unchanged ones keep their version',
  example: 'workflows push my-agent',
  async run(context, { args: [folder = '.'] }) {
    const client = await context.client();
    const definitions = await workflowsIn(folder);
    const shared = await sharedAmong(client, definitions);
    for (const definition of definitions) {
      const { id } = definition;
      const twin = shared.get(id);
      const isTwin = twin !== undefined && (await compare(client, definition)).state === 'same';
      const summary = isTwin ? twin : await client.registerWorkflow(definition);
      context.show(
        summary,
        () =>
          isTwin
            ? [`${id}: not pushed, the host shares the same workflow`]
            : pushedLines(context, { definition, summary, twin }),
        () => [id],
      );
    }
    return EXIT.done;
  },
};

/** A workflow that was pushed, and the shared one whose place it took. */
interface Pushed {
  readonly definition: WorkflowDefinition;
  readonly summary: WorkflowSummary;
  readonly twin: WorkflowSummary | undefined;
}

function pushedLines({ paint }: Context, { definition, summary, twin }: Pushed): string[] {
  const { id, registeredVersion, warnings = [] } = summary;
  const shadows = `  It replaces the workflow ${id} that the host shares, for your tenant. \`capstan workflows delete ${id}\` ends that.`;
  return [
    ...warnings.map((warning) => paint('yellow', `warning: ${lineOf(warning)}`)),
    `${id}: version ${registeredVersion}. Run it with: capstan ${startCommand(definition)}`,
    ...(twin ? [paint('yellow', shadows)] : []),
  ];
}

/** Those of the workflows that the host shares with all tenants, and that the tenant has none of its own of. */
async function sharedAmong(
  client: Client,
  definitions: readonly WorkflowDefinition[],
): Promise<ReadonlyMap<string, WorkflowSummary>> {
  const ids = new Set(definitions.map(({ id }) => id));
  const found = new Map<string, WorkflowSummary>();
  for await (const summary of client.each('listWorkflows', { limit: 200 })) {
    if (summary.shared && ids.has(summary.id)) found.set(summary.id, summary);
  }
  return found;
}

/** How a workflow of a folder differs from that of the host. */
interface Comparison {
  readonly id: string;
  readonly state: 'same' | 'changed' | 'new';
  /** The members that differ. */
  readonly paths: readonly string[];
}

/** `capstan workflows diff`; exits with 1 when a push would change something. */
export const diff: CommandSpec = {
  name: 'diff',
  takes: '[folder]',
  summary: 'Show what a push would change; exits with 1 if it is something',
  example: 'workflows diff my-agent',
  async run(context, { args: [folder = '.'] }) {
    const client = await context.client();
    const compared: Comparison[] = [];
    for (const definition of await workflowsIn(folder)) compared.push(await compare(client, definition));
    const changed = compared.filter(({ state }) => state !== 'same');
    context.show(
      compared,
      () =>
        compared.flatMap(({ id, state, paths }) => [`${id}: ${state}`, ...paths.map((path) => `  ${sanitize(path)}`)]),
      () => changed.map(({ id }) => id),
    );
    return changed.length === 0 ? EXIT.done : EXIT.refused;
  },
};

async function compare(client: Client, definition: WorkflowDefinition): Promise<Comparison> {
  const { id } = definition;
  const current = await registered(client, id);
  if (!current) return { id, state: 'new', paths: [] };
  const paths = differing(current, definition, '');
  return { id, state: paths.length === 0 ? 'same' : 'changed', paths };
}

async function registered(client: Client, id: string): Promise<WorkflowDefinition | undefined> {
  try {
    return await client.readWorkflow(id);
  } catch (error) {
    if (error instanceof RefusedError && error.status === 404) return undefined;
    throw error;
  }
}

/** The innermost members that differ. Nodes, edges and other lists of things are compared by their names. */
function differing(before: unknown, after: unknown, path: string): string[] {
  if (canonicalJson(before ?? null) === canonicalJson(after ?? null)) return [];
  const [left, right] = [byName(before), byName(after)];
  if (!left || !right) return [path];
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  const below = [...names].flatMap((name) =>
    differing(left[name], right[name], path === '' ? name : `${path}.${name}`),
  );
  return below.length > 0 ? below : [path];
}

function byName(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (isObject(value)) return value;
  if (!Array.isArray(value)) return undefined;
  const named = value.map((item): [unknown, unknown] => [isObject(item) ? (item.id ?? item.name) : undefined, item]);
  return named.every(([name]) => typeof name === 'string') ? Object.fromEntries(named) : undefined;
}

/** `capstan workflows pull`; with `--code`, a folder that is empty becomes a project. */
export const pull: CommandSpec = {
  name: 'pull',
  takes: '<folder>',
  summary: 'Write your workflows on the host into a folder, as files that push and projects take',
  flags: { '--code': 'as TypeScript instead of JSON: code that makes the same definitions again' },
  example: 'workflows pull backup',
  async run(context, { args: [folder = '.'], options }) {
    const client = await context.client();
    mkdirSync(folder, { recursive: true });
    const pulled: WorkflowDefinition[] = [];
    for await (const { id, shared } of client.each('listWorkflows')) {
      if (!shared) pulled.push(await client.readWorkflow(id));
    }
    pulled.sort((a, b) => (a.id < b.id ? -1 : 1));
    const files = options.code ? await codeFiles(folder, pulled) : pulled.map(jsonFile);
    const written = files.map(({ name, text }) => {
      const file = join(folder, name);
      writeFileSync(file, text);
      return file;
    });
    context.show(
      written,
      () => (written.length === 0 ? ['You have no workflows of your own there.'] : written),
      () => written,
    );
    return EXIT.done;
  },
};

interface TextFile {
  readonly name: string;
  readonly text: string;
}

/** A name from outside never leads out of the folder. */
function jsonFile(definition: WorkflowDefinition): TextFile {
  return { name: `${encodeURIComponent(definition.id)}.json`, text: `${JSON.stringify(definition, null, 2)}\n` };
}

/** A file for each workflow, and one for the project unless the folder has one: that is its author's. */
async function codeFiles(folder: string, pulled: readonly WorkflowDefinition[]): Promise<TextFile[]> {
  // Imported late: it loads what projects are built with.
  const { importOf, numbered, workflowSource } = await import('../workflow-folder.ts');
  const sources = pulled.map((definition) => ({
    file: encodeURIComponent(definition.id),
    ...workflowSource(definition),
  }));
  const files = sources.map(({ file, text }) => ({ name: `${file}.ts`, text }));
  const isProject = readdirSync(folder).some((name) => name.startsWith('capstan.config.'));
  if (isProject || sources.length === 0) return files;
  const names = numbered(sources.map(({ name }) => name));
  const imports = sources.map(({ file, name }, index) =>
    importOf([name === names[index] ? name : `${name} as ${names[index]}`], { from: `./${file}.ts` }),
  );
  const lines = [
    importOf(['defineProject']) + imports.join(''),
    'export default defineProject({',
    '  workflows: [',
    ...names.map((name) => `    ${name},`),
    '  ],',
    '});',
    '',
  ];
  return [...files, { name: 'capstan.config.ts', text: lines.join('\n') }];
}
