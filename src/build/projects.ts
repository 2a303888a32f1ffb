/** What the command needs of projects, without what only their code and tests need. */
export { type Project, settingsOf } from './define-project.ts';
export { loadProject } from './load-project.ts';
export { nodeTypesOf } from './own-nodes.ts';
export { ownProject } from './own-project.ts';
export { definedAt } from './own-workflow.ts';
export { ProjectProblem } from './project-problem.ts';
