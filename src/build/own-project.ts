import { defineCapability } from '../capabilities/capability.ts';
import { hostCaller } from '../capabilities/host-caller.ts';
import type { Caller } from '../capabilities/request.ts';
import { Workflows } from '../capabilities/running/workflows/door.ts';
import { completeWorkflow } from '../engine/definition/complete.ts';
import { definitionWarnings } from '../engine/definition/warnings.ts';
import { validator } from '../http/validation.ts';
import { isRefusal, type Refusal } from '../protocol/errors.ts';
import { AuthoredWorkflow } from '../protocol/running/workflows.ts';
import { perform } from '../runtime/change.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Project } from './define-project.ts';
import { placeIn } from './definition-place.ts';
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

/** Every tenant may run what a project has. Registering it again changes nothing. What is probably not meant is logged. */
async function register(
  runtime: Runtime,
  workflows: Workflows,
  { workflow, servedFor }: { readonly workflow: AuthoredWorkflow; readonly servedFor: Caller | undefined },
): Promise<void> {
  const file = definedAt(workflow);
  const invalid = checkShape(workflow);
  if (invalid) throw new ProjectProblem(problemsOf({ workflow, file }, invalid));
  const whole = completeWorkflow(workflow);
  const outcome = await perform(runtime, () => workflows.registerShared(whole, { servedFor }));
  if (isRefusal(outcome)) throw new ProjectProblem(problemsOf({ workflow: whole, file }, outcome));
  for (const warning of definitionWarnings(whole, runtime.catalog)) {
    runtime.log.warn({}, lineOf({ workflow: whole, file }, warning));
  }
}

/** A workflow of a project, and where it stands in its code. */
interface Placed {
  readonly workflow: AuthoredWorkflow;
  readonly file: string | undefined;
}

interface Finding {
  readonly path?: string;
  readonly message: string;
}

function problemsOf(placed: Placed, { message, details }: Refusal): string {
  const fields = Array.isArray(details?.fields) ? (details.fields as Finding[]) : [];
  const findings = fields.length > 0 ? fields : [{ message }];
  return findings.map((finding) => lineOf(placed, finding)).join('\n');
}

function lineOf({ workflow, file }: Placed, { path, message }: Finding): string {
  const place = path === undefined ? '' : `${placeIn(workflow, path)}: `;
  return `${file ? `${file}: ` : ''}workflow ${JSON.stringify(workflow.id)}: ${place}${message}`;
}
