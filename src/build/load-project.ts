import { existsSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { placesIn } from './call-site.ts';
import type { Project } from './define-project.ts';
import { serveOwnImports } from './project-imports.ts';
import { ProjectProblem } from './project-problem.ts';

/** The names that the file of a project may have. */
const NAMES = ['capstan.config.ts', 'capstan.config.mts', 'capstan.config.js', 'capstan.config.mjs'];

/** Loads the project in a folder. What is wrong with it is a `ProjectProblem` that names the file and the line. */
export async function loadProject(folder: string): Promise<Project> {
  const root = resolve(folder);
  const file = NAMES.map((name) => join(root, name)).find((path) => existsSync(path));
  if (file === undefined) {
    throw new ProjectProblem(`${root} has no ${NAMES[0]}. \`capstan init\` makes a project.`);
  }
  serveOwnImports();
  const { default: project } = await importFile(file, root);
  if (!isProject(project)) {
    throw new ProjectProblem(
      `${file}: its default export is not a project. Write: export default defineProject({ … })`,
    );
  }
  const models = project.models?.map((model) =>
    typeof model.script === 'string' ? { ...model, script: resolve(root, model.script) } : model,
  );
  return { ...project, ...(models ? { models } : {}) };
}

async function importFile(file: string, root: string): Promise<{ readonly default?: unknown }> {
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    const { message, stack = '', name } = error instanceof Error ? error : new Error(String(error));
    // Syntax errors have their place, without a column, above the message.
    const [, above] = /^(?:file:\/\/)?(\/\S+:\d+)$/m.exec(stack) ?? [];
    const place = above ?? placesIn(stack).find((each) => isOwnFile(each, root));
    const kind = name === 'Error' || name === 'TypeError' ? '' : `${name}: `;
    throw new ProjectProblem(`${place ?? file}: ${kind}${message}`);
  }
}

function isOwnFile(place: string, root: string): boolean {
  return place.startsWith(root + sep) && !place.includes(`${sep}node_modules${sep}`);
}

function isProject(value: unknown): value is Project {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'project';
}
