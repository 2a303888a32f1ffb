import type { NewEvent } from '../protocol/events.ts';
import { type JsonObject, own } from '../protocol/json.ts';
import type { ManagementWorkflow } from '../protocol/management.ts';
import type { WorkflowDefinition, WorkflowNode } from '../protocol/workflows.ts';
import { HOST_OWNER } from '../store/definitions.ts';
import type { Unit } from '../store/sql.ts';
import { sha256Hex } from '../system/digest.ts';
import { announce, creationWrites, recordNow } from './append.ts';
import { createRun } from './creation.ts';
import type { Subject } from './run-row.ts';
import type { Runtime } from './runtime.ts';

/** The node of a proposal's run at which people decide. */
export const REVIEW = 'review';
/** The node of a goal's run at which people are asked to take over. */
export const ESCALATION = 'escalation';

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
    definition('capstan-goal', 'Life of a goal', { ...node(ESCALATION, 'Escalation'), typeId: 'core.interrupt' }),
  ],
};

function node(id: string, name: string): Omit<WorkflowNode, 'typeId'> {
  return { id, name, position: { x: 0, y: 0 }, config: {}, inputs: {} };
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

export interface ManagementRun {
  readonly runId: string;
  /** What brings it into being, for the unit of what it is about. */
  readonly writes: Unit;
  /** To be called once that is in the store. */
  readonly committed: () => void;
}

/**
 * A run whose log tells the life of a proposal or a goal. It has no work item, so nobody drives it and no time runs out
 * for it: it is moved on, and ended, with `command`.
 */
export async function openManagementRun(
  runtime: Runtime,
  { workflowId, subject, inputs }: NewManagementRun,
  firstEvents: readonly NewEvent[],
): Promise<ManagementRun> {
  const plan = await runtime.plans.pinned(HOST_OWNER, workflowId, DEFINITIONS[workflowId].length);
  const workflow = { owner: HOST_OWNER, plan };
  const { held, recorded } = createRun(runtime, { subject, workflow, inputs, configurable: {}, depth: 0 });
  const { runId, createdAt } = held.run.facts;
  const all = [...recorded, ...firstEvents.map((event) => recordNow(held, event, createdAt, sha256Hex))];
  return {
    runId,
    writes: creationWrites({ held, recorded: all }, runtime.reactions),
    committed: () => announce(runtime, held, all),
  };
}
