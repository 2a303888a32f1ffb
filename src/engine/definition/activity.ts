import type { WorkflowDefinition } from '../../protocol/running/workflows.ts';

/** Why a workflow starts no new runs; undefined if it does. Drafts do: that is how they are tried. */
export function inactivityOf({ status, isActive }: WorkflowDefinition): 'archived' | 'inactive' | undefined {
  if (status === 'archived' || status === 'inactive') return status;
  return isActive === false ? 'inactive' : undefined;
}
