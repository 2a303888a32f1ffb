/**
 * Workflows of the host itself: a management run per proposal and per goal, and one per verdict by a model. Lists,
 * feeds and statistics exclude these runs.
 */
export const MANAGEMENT_WORKFLOWS = ['capstan-proposal', 'capstan-goal', 'capstan-judge'] as const;
/** One of MANAGEMENT_WORKFLOWS. */
export type ManagementWorkflow = (typeof MANAGEMENT_WORKFLOWS)[number];

/** Whether a run of this workflow is a management run. */
export function isManagement(workflowId: string): workflowId is ManagementWorkflow {
  return (MANAGEMENT_WORKFLOWS as readonly string[]).includes(workflowId);
}
