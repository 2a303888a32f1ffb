import type { Problem } from '../../../engine/definition/check.ts';
import type { Refusal } from '../../../protocol/errors.ts';
import type { WorkflowDefinition, WorkflowNode, WorkflowWarning } from '../../../protocol/running/workflows.ts';
import type { Change } from '../../../runtime/change.ts';
import type { NodeType } from '../../../runtime/node-type.ts';
import type { WorkflowCursor } from '../../../store/definitions.ts';
import { door, extensionPoint } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import type { SharedRegistration } from './rules.ts';
import type { WorkflowCheck } from './warnings.ts';

export { refuseProblems } from './rules.ts';
export { nodeWarnings, type WorkflowCheck } from './warnings.ts';

/** Registering, reading and removing workflow definitions. */
export interface Workflows {
  /** The version that a new run of the caller would get. */
  find(caller: Caller, workflowId: string): Promise<RegisteredWorkflow | undefined>;
  /** Workflows that the caller may run, most recently changed first. */
  list(caller: Caller, after: WorkflowCursor, limit: number): Promise<RegisteredWorkflow[]>;
  /** What registering the definition would be refused for, or the warnings that it would get. Nothing is stored. */
  validate(caller: Caller, definition: WorkflowDefinition): Promise<readonly WorkflowWarning[] | Refusal>;
  /** The versions of the workflow that `find` returns, newest first and before a number. */
  versions(caller: Caller, workflowId: string, before: number, limit: number): Promise<StoredVersion[] | undefined>;
  /** One of these versions. */
  version(caller: Caller, workflowId: string, version: number): Promise<WorkflowDefinition | undefined>;
  /** The definition that a run is pinned to; undefined if the caller cannot see the run. */
  ofRun(caller: Caller, runId: string): Promise<WorkflowDefinition | undefined>;
  /** Stores a definition as the next version. A definition that equals the current version stays as it is. */
  register(caller: Caller, definition: WorkflowDefinition): Promise<Change<RegisteredWorkflow> | Refusal>;
  /** The same for a workflow that the caller can see already; refused with 404 otherwise. */
  replace(caller: Caller, definition: WorkflowDefinition): Promise<Change<RegisteredWorkflow> | Refusal>;
  /** Registers a definition for every tenant. It belongs to the host; companions change for one tenant, if one is named. */
  registerShared(
    definition: WorkflowDefinition,
    options?: SharedRegistration,
  ): Promise<Change<RegisteredWorkflow> | Refusal>;
  /**
   * Removes what starts runs of shared workflows for tenants or workflows that `registerShared` was not called for since
   * the start: those that the operator named before.
   */
  withdrawShared(): Promise<Change | Refusal>;
  /** Runs that have started keep their version; no new ones can be started. */
  remove(caller: Caller, workflowId: string): Promise<Change | Refusal>;
}

/** The door to workflows. */
export const Workflows = door<Workflows>()('workflows');

/** A definition with its place among the versions of the workflow. */
export interface RegisteredWorkflow {
  readonly definition: WorkflowDefinition;
  readonly version: number;
  /** Every tenant may run it, none may change it. */
  readonly isShared: boolean;
  readonly updatedAt: number;
  /** The warnings of its registration, if it was registered just now. */
  readonly warnings?: readonly WorkflowWarning[];
}

/** A version of a workflow, current or not. */
export interface StoredVersion {
  readonly definition: WorkflowDefinition;
  readonly version: number;
  readonly isCurrent: boolean;
  readonly createdAt: number;
}

/**
 * Decides what else changes when a workflow is registered, replaced or removed (then there is no definition), in the
 * same unit: its schedules, for instance.
 */
export type WorkflowCompanion = (
  caller: Caller,
  workflowId: string,
  definition: WorkflowDefinition | undefined,
) => Promise<Change<unknown> | Refusal>;

/** Where capabilities add warnings to the answer of a registration. */
export const WorkflowWarnings = extensionPoint<WorkflowCheck>('workflows.warnings');

/** What is known about the nodes of a definition whose types are not part of the host. */
export interface OtherNodes {
  readonly types: readonly NodeType[];
  readonly problems: readonly Problem[];
}

/** Finds what is known about nodes whose types are not part of the host, such as those that workers of a tenant serve. */
type OtherNodesOf = (tenant: string, nodes: readonly IndexedNode[]) => Promise<OtherNodes>;

/** A node and its place in the definition. */
export interface IndexedNode {
  readonly node: WorkflowNode;
  readonly index: number;
}

/** Where capabilities make types known to a tenant. */
export const OtherNodeTypes = extensionPoint<OtherNodesOf>('workflows.otherNodeTypes');

/** Where capabilities add to the change of a workflow. */
export const WorkflowCompanions = extensionPoint<WorkflowCompanion>('workflows.companions');

/** A workflow, and a tenant for which the host itself made companions of it. */
export interface ServedWorkflow {
  readonly tenant_name: string;
  readonly workflow_id: string;
}

/** Where capabilities say of which workflows they have companions that the host itself made. */
export const ServedWorkflows = extensionPoint<() => Promise<readonly ServedWorkflow[]>>('workflows.served');
