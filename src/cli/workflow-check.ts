import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { type Client, RefusedError, UnreachableError } from '../client/index.ts';
import type { WorkflowDefinition } from '../protocol/running/workflows.ts';
import type { Context } from './command.ts';
import { currentLogin } from './credentials.ts';
import { UsageError } from './exit.ts';
import { counted } from './text.ts';
import { type Checked, checkDefinition, definitionFrom, type Finding, readWorkflowFile } from './workflow-file.ts';
import { definedAt, isProject, nodeTypesOf, projectIn } from './workflow-folder.ts';

/** What a check of one workflow came to, and where the workflow is. */
export interface CheckedFile extends Checked {
  readonly file: string;
}

/** The key may not ask, or the host is one that has no such route. */
const NOT_ASKED: readonly number[] = [403, 404];

/**
 * Checks the workflows at a path: a file, a folder of files, or a project. Those of a project are checked with its own
 * nodes; others by the host, which knows the node types of its projects and workers.
 */
export async function checkPath(context: Context, check: DefinitionCheck, path: string): Promise<CheckedFile[]> {
  const folder = folderOf(path);
  if (folder === undefined) return [await checkFile(check, path)];
  if (isProject(folder)) return checkProject(context, folder);
  const files = readdirSync(folder).filter((name) => /\.(json|ya?ml)$/i.test(name));
  if (files.length === 0) throw new UsageError(`The folder ${folder} has no workflows: no JSON, no YAML, no project.`);
  return Promise.all(files.sort().map((name) => checkFile(check, join(folder, name))));
}

/** The folder that a path means: itself, or that of the file of a project. */
function folderOf(path: string): string | undefined {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path;
  return basename(path).startsWith('capstan.config.') ? dirname(path) : undefined;
}

async function checkFile(check: DefinitionCheck, file: string): Promise<CheckedFile> {
  const read = await readWorkflowFile(file);
  return { file, ...('problems' in read ? { warnings: [], ...read } : await check(read)) };
}

/** The host may serve an older version of the project, so it is not asked. */
async function checkProject(context: Context, folder: string): Promise<CheckedFile[]> {
  const { nodes, workflows } = await projectIn(folder);
  const types = nodeTypesOf(nodes);
  const what = `${counted(workflows.length, 'workflow')} of the project in ${folder}`;
  context.note(`Checking the ${what}, with the nodes of the project.`);
  return Promise.all(
    workflows.map(async (workflow) => {
      const place = definedAt(workflow);
      const file = `${workflow.id}${place === undefined ? '' : ` (${relative(process.cwd(), place)})`}`;
      const definition = definitionFrom(workflow);
      return {
        file,
        ...('problems' in definition ? { warnings: [], ...definition } : await checkDefinition(definition, types)),
      };
    }),
  );
}

/** Checks a complete definition. */
export type DefinitionCheck = (definition: WorkflowDefinition) => Promise<Checked>;

/** A check by the host that is logged in to; if there is none to ask, one with the node types of this version. */
export async function definitionCheck(context: Context): Promise<DefinitionCheck> {
  const { key } = await currentLogin(context.terminal.environment);
  let client = key === undefined ? undefined : await context.client();
  const goOnAlone = (why: string): void => {
    client = undefined;
    context.note(`${why} Checked with the built-in node types only, without those of projects and workers.`);
  };
  if (!client) goOnAlone('You are not logged in to a host.');
  return async (definition) => {
    const answer = client ? await askHost(client, definition) : '';
    if (typeof answer !== 'string') return answer;
    // Of several files that are checked at once, the first says why.
    if (client) goOnAlone(answer);
    return checkDefinition(definition);
  };
}

/** What the host finds, or why it cannot be asked. */
async function askHost(host: Client, definition: WorkflowDefinition): Promise<Checked | string> {
  try {
    return { problems: [], ...(await host.validateWorkflow(definition, { retry: { attempts: 1 } })) };
  } catch (error) {
    if (error instanceof UnreachableError) return error.message;
    if (!(error instanceof RefusedError) || error.status === 401) throw error;
    if (NOT_ASKED.includes(error.status)) return `The host does not check it: ${error.message}`;
    return { problems: findingsOf(error), warnings: [] };
  }
}

function findingsOf({ message, details: { fields } }: RefusedError): readonly Finding[] {
  return Array.isArray(fields) ? (fields as Finding[]) : [{ path: '', message }];
}
