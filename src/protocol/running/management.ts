/**
 * Workflows of the host's own: one run for each proposal and goal, and one whenever a model is to judge. Lists, feeds and
 * numbers are about other runs.
 */
export const MANAGEMENT_WORKFLOWS = ['capstan-proposal', 'capstan-goal', 'capstan-judge'] as const;
export type ManagementWorkflow = (typeof MANAGEMENT_WORKFLOWS)[number];

export function isManagement(workflowId: string): workflowId is ManagementWorkflow {
  return (MANAGEMENT_WORKFLOWS as readonly string[]).includes(workflowId);
}

/** For statements: what a workflow's id is not in, where runs of the host's own are left aside. */
export const MANAGEMENT_IDS = `(${MANAGEMENT_WORKFLOWS.map((id) => `'${id}'`).join(', ')})`;
