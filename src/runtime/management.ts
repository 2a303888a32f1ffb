import type { JsonObject } from '../protocol/format/json.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import type { ManagementWorkflow } from '../protocol/running/management.ts';
import { HOST_OWNER } from '../store/definitions.ts';
import { sha256Hex } from '../system/digest.ts';
import { recordAndApply } from './append.ts';
import type { Change } from './change.ts';
import { createRun } from './creation.ts';
import { MANAGEMENT_DEFINITIONS } from './management-workflows.ts';
import type { PinnedPlan } from './plans.ts';
import type { Subject } from './run-row.ts';
import type { Runtime } from './runtime.ts';
import { type StartedRun, startRun } from './start-run.ts';

/** The newest version of a management workflow, which new runs are pinned to. */
export async function managementPlan({ plans }: Runtime, workflowId: ManagementWorkflow): Promise<PinnedPlan> {
  return {
    owner: HOST_OWNER,
    plan: await plans.pinned(HOST_OWNER, workflowId, MANAGEMENT_DEFINITIONS[workflowId].length),
  };
}

/** What is needed to open a management run. */
interface NewManagementRun {
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
