import { own } from '../protocol/format/json.ts';
import type { ManagementWorkflow } from '../protocol/running/management.ts';
import type { PortValue, WorkflowDefinition, WorkflowNode } from '../protocol/running/workflows.ts';
import { HOST_OWNER } from '../store/definitions.ts';

/** Id of the node in a proposal's run at which reviewers vote. */
export const REVIEW = 'review';

/**
 * The versions of each workflow of management runs. They are part of the program and in no table, so no API can list,
 * start, replace or remove them. A change that existing logs cannot be folded with is a new version at the end of the
 * list.
 */
export const MANAGEMENT_DEFINITIONS: Record<ManagementWorkflow, readonly WorkflowDefinition[]> = {
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

/** Finds a version of a management workflow; undefined if the owner is a tenant or there is no such workflow. */
export function managementDefinition(
  owner: string,
  workflowId: string,
  version: number,
): WorkflowDefinition | undefined {
  return owner === HOST_OWNER ? own(MANAGEMENT_DEFINITIONS, workflowId)?.[version - 1] : undefined;
}

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
