import { defineCapability } from '../capabilities/capability.ts';
import { Workflows } from '../capabilities/running/workflows/door.ts';
import { completeWorkflow } from '../engine/definition/complete.ts';
import { validator } from '../http/validation.ts';
import { isRefusal, type Refusal } from '../protocol/errors.ts';
import { AuthoredWorkflow } from '../protocol/running/workflows.ts';
import { perform } from '../runtime/change.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Project } from './define-project.ts';
import { nodeTypesOf } from './own-nodes.ts';
import { definedAt } from './own-workflow.ts';
import { ProjectProblem } from './project-problem.ts';

const checkShape = validator(AuthoredWorkflow, 'body');

/** A capability that adds the nodes and workflows of a project to a host: pass it to `startHost`. */
export function ownProject(project: Project) {
  const types = nodeTypesOf(project.nodes);
  return defineCapability({
    name: 'project',
    needs: [Workflows],
    nodes: () => types,
    build: ({ runtime }, { workflows }) => ({
      prepare: async () => {
        for (const workflow of project.workflows) await register(runtime, workflows, workflow);
      },
    }),
  });
}

/** Every tenant may run what a project has. Registering it again changes nothing. */
async function register(runtime: Runtime, workflows: Workflows, workflow: AuthoredWorkflow): Promise<void> {
  const outcome =
    checkShape(workflow) ?? (await perform(runtime, () => workflows.registerShared(completeWorkflow(workflow))));
  if (isRefusal(outcome)) throw new ProjectProblem(problemsOf(workflow, outcome));
}

function problemsOf(workflow: AuthoredWorkflow, { message, details }: Refusal): string {
  const fields = Array.isArray(details?.fields) ? (details.fields as { path: string; message: string }[]) : [];
  const place = definedAt(workflow);
  const lines = fields.length > 0 ? fields.map((field) => `${field.path}: ${field.message}`) : [message];
  return lines.map((line) => `${place ? `${place}: ` : ''}workflow ${JSON.stringify(workflow.id)}: ${line}`).join('\n');
}
