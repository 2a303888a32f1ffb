import type { Refusal } from '../../../protocol/errors.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import type { Change } from '../../../runtime/change.ts';
import { door, extensionPoint } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import type { WorkflowService } from './service.ts';

export type Workflows = WorkflowService;
export const Workflows = door<Workflows>()('workflows');

/**
 * Decides what else changes when a workflow is registered, replaced or removed (then there is no definition), in the
 * same unit: its schedules, for instance.
 */
export type WorkflowCompanion = (
  caller: Caller,
  workflowId: string,
  definition: WorkflowDefinition | undefined,
) => Promise<Change<unknown> | Refusal>;

/** Where capabilities add to the change of a workflow. */
export const WorkflowCompanions = extensionPoint<WorkflowCompanion>('workflows.companions');
