import { type JsonObject, own } from '../protocol/format/json.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import type { ManagementWorkflow } from '../protocol/running/management.ts';
import type { PortValue, WorkflowDefinition, WorkflowNode } from '../protocol/running/workflows.ts';
import { HOST_OWNER } from '../store/definitions.ts';
import { sha256Hex } from '../system/digest.ts';
import { recordAndApply } from './append.ts';
import type { Change } from './change.ts';
import { createRun } from './creation.ts';
import type { PinnedPlan } from './plans.ts';
import type { Subject } from './run-row.ts';
import type { Runtime } from './runtime.ts';
import { type StartedRun, startRun } from './start-run.ts';

/** Id of the node in a proposal's run at which reviewers vote. */
export const REVIEW = 'review';

/**
 * The workflows of management runs. They are part of the program and in no table, so no API can list, start, replace or
 * remove them. A change that existing logs cannot be folded with is a new version at the end of the list.
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

/** The newest version of a management workflow, which new runs are pinned to. */
export async function managementPlan({ plans }: Runtime, workflowId: ManagementWorkflow): Promise<PinnedPlan> {
  return { owner: HOST_OWNER, plan: await plans.pinned(HOST_OWNER, workflowId, DEFINITIONS[workflowId].length) };
}

/** Finds a version of a management workflow; undefined if the owner is a tenant or there is no such workflow. */
export function managementDefinition(
  owner: string,
  workflowId: string,
  version: number,
): WorkflowDefinition | undefined {
  return owner === HOST_OWNER ? own(DEFINITIONS, workflowId)?.[version - 1] : undefined;
}

/** What is needed to open a management run. */
export interface NewManagementRun {
  readonly workflowId: ManagementWorkflow;
  readonly subject: Subject;
  readonly inputs: JsonObject;
}

/**
 * Creates a run whose log is the history of a proposal or a goal. It has no work item, so it is never driven and never
 * times out: only `moveRun` appends to it and ends it.
 */
export async function openManagementRun(
  runtime: Runtime,
  { workflowId, subject, inputs }: NewManagementRun,
  firstEvents: readonly NewEvent[],
): Promise<Change<StartedRun>> {
  const workflow = await managementPlan(runtime, workflowId);
  const { held, recorded } = createRun(runtime, { subject, workflow, inputs, configurable: {}, depth: 0 });
  const { createdAt } = held.run.facts;
  const all = [...recorded, ...firstEvents.map((event) => recordAndApply(held, event, createdAt, sha256Hex))];
  return startRun(runtime, { held, recorded: all }, 'undriven');
}
