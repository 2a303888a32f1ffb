import { type JsonObject, own } from '../protocol/format/json.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import type { ManagementWorkflow } from '../protocol/running/management.ts';
import type { PortValue, WorkflowDefinition, WorkflowNode } from '../protocol/running/workflows.ts';
import { HOST_OWNER } from '../store/definitions.ts';
import { sha256Hex } from '../system/digest.ts';
import { recordNow } from './append.ts';
import type { Change } from './change.ts';
import { createRun } from './creation.ts';
import type { PinnedPlan } from './plans.ts';
import type { Subject } from './run-row.ts';
import type { Runtime } from './runtime.ts';
import { type StartedRun, startRun } from './start-run.ts';

/** The node of a proposal's run at which people decide. */
export const REVIEW = 'review';

/**
 * What management runs are runs of. They are part of the program and lie in no table: nobody can list, start, replace
 * or remove them. A change that old logs do not fit is another version.
 */
const DEFINITIONS: Record<ManagementWorkflow, readonly WorkflowDefinition[]> = {
  'capstan-proposal': [
    definition('capstan-proposal', 'Life of a proposal', {
      ...node(REVIEW, 'Review'),
      typeId: 'core.openwop.governance.approvalGate',
      config: { requiredScope: 'proposals:activate' },
    }),
  ],
  'capstan-goal': [
    definition('capstan-goal', 'Life of a goal', { ...node('escalation', 'Escalation'), typeId: 'core.interrupt' }),
  ],
  'capstan-judge': [
    definition('capstan-judge', 'Verdict of a model', {
      ...node('judge', 'Judge'),
      typeId: 'vendor.capstan.judge',
      inputs: { rubric: input('rubric'), objective: input('objective'), material: input('material') },
      settings: { retry: { maxRetries: 2 } },
    }),
  ],
};

function node(id: string, name: string): Omit<WorkflowNode, 'typeId'> {
  return { id, name, position: { x: 0, y: 0 }, config: {}, inputs: {} };
}

function input(name: string): PortValue {
  return { type: 'expression', expression: `inputs.${name}` };
}

function definition(id: ManagementWorkflow, name: string, only: WorkflowNode): WorkflowDefinition {
  return {
    id,
    name,
    version: '1',
    nodes: [only],
    edges: [],
    triggers: [],
    variables: [],
    metadata: {},
    settings: {},
  };
}

/** The version that runs which begin now are pinned to. */
export async function managementPlan({ plans }: Runtime, workflowId: ManagementWorkflow): Promise<PinnedPlan> {
  return { owner: HOST_OWNER, plan: await plans.pinned(HOST_OWNER, workflowId, DEFINITIONS[workflowId].length) };
}

export function managementDefinition(
  owner: string,
  workflowId: string,
  version: number,
): WorkflowDefinition | undefined {
  return owner === HOST_OWNER ? own(DEFINITIONS, workflowId)?.[version - 1] : undefined;
}

export interface NewManagementRun {
  readonly workflowId: ManagementWorkflow;
  readonly subject: Subject;
  readonly inputs: JsonObject;
}

/**
 * A run whose log tells the life of a proposal or a goal. It has no work item, so nobody drives it and no time runs out
 * for it: it is moved on, and ended, with `command`.
 */
export async function openManagementRun(
  runtime: Runtime,
  { workflowId, subject, inputs }: NewManagementRun,
  firstEvents: readonly NewEvent[],
): Promise<Change<StartedRun>> {
  const workflow = await managementPlan(runtime, workflowId);
  const { held, recorded } = createRun(runtime, { subject, workflow, inputs, configurable: {}, depth: 0 });
  const { createdAt } = held.run.facts;
  const all = [...recorded, ...firstEvents.map((event) => recordNow(held, event, createdAt, sha256Hex))];
  return startRun(runtime, { held, recorded: all }, 'undriven');
}
