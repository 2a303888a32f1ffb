import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { definedAt, loadProject, nodeTypesOf, type Project, ProjectProblem } from '../build/projects.ts';
import { completeWorkflow } from '../engine/definition/complete.ts';
import type { AuthoredWorkflow, WorkflowDefinition } from '../protocol/running/workflows.ts';
import { UsageError } from './exit.ts';
import { readTextFile } from './values.ts';

export { importOf, numbered, workflowSource } from '../build/workflow-source.ts';
export { definedAt, nodeTypesOf };

/** The workflows of a folder, complete: those of its project, or else those in its JSON files. */
export async function workflowsIn(folder: string): Promise<WorkflowDefinition[]> {
  if (!existsSync(folder)) throw new UsageError(`There is no folder ${folder}.`);
  const names = readdirSync(folder).sort();
  if (isProject(folder)) return (await projectIn(folder)).workflows.map(completeWorkflow);
  const files = names.filter((name) => name.endsWith('.json')).map((name) => join(folder, name));
  return Promise.all(files.map(async (file) => completeWorkflow(parse(file, await readTextFile(file)))));
}

/** Whether a folder has a project in it. */
export function isProject(folder: string): boolean {
  return readdirSync(folder).some((name) => name.startsWith('capstan.config.'));
}

/** The project in a folder; what is wrong with it is a mistake of whoever named the folder. */
export async function projectIn(folder: string): Promise<Project> {
  try {
    return await loadProject(folder);
  } catch (error) {
    throw error instanceof ProjectProblem ? new UsageError(error.message) : error;
  }
}

/** The host checks what it gets; here a file has to be a workflow at all. */
function parse(file: string, text: string): AuthoredWorkflow {
  try {
    const value = JSON.parse(text) as AuthoredWorkflow;
    if (Array.isArray(value.nodes)) return value;
  } catch (error) {
    throw new UsageError(`${file}: ${(error as Error).message}`);
  }
  throw new UsageError(`${file} is not a workflow: it has no nodes.`);
}
