import { defineCapability } from '../capabilities/capability.ts';
import { hostCaller } from '../capabilities/host-caller.ts';
import type { Caller } from '../capabilities/request.ts';
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

/**
 * A capability that adds the nodes and workflows of a project to a host: pass it to `startHost`. Triggers and schedules of
 * its workflows start runs of `tenant`; without one they are not served.
 */
export function ownProject(project: Project, tenant?: string) {
  const types = nodeTypesOf(project.nodes);
  const servedFor = tenant === undefined ? undefined : hostCaller(tenant);
  return defineCapability({
    name: 'project',
    needs: [Workflows],
    nodes: () => types,
    build: ({ runtime }, { workflows }) => ({
      prepare: async () => {
        for (const workflow of project.workflows) await register(runtime, workflows, { workflow, servedFor });
      },
    }),
  });
}

/** Every tenant may run what a project has. Registering it again changes nothing. */
async function register(
  runtime: Runtime,
  workflows: Workflows,
  { workflow, servedFor }: { readonly workflow: AuthoredWorkflow; readonly servedFor: Caller | undefined },
): Promise<void> {
  const store = () => workflows.registerShared(completeWorkflow(workflow), { servedFor });
  const outcome = checkShape(workflow) ?? (await perform(runtime, store));
  if (isRefusal(outcome)) throw new ProjectProblem(problemsOf(workflow, outcome));
}

function problemsOf(workflow: AuthoredWorkflow, { message, details }: Refusal): string {
  const fields = Array.isArray(details?.fields) ? (details.fields as { path: string; message: string }[]) : [];
  const place = definedAt(workflow);
  const lines = fields.length > 0 ? fields.map((field) => `${field.path}: ${field.message}`) : [message];
  return lines.map((line) => `${place ? `${place}: ` : ''}workflow ${JSON.stringify(workflow.id)}: ${line}`).join('\n');
}
