/** Workflows of the host's own, one run for each proposal and goal. Lists, feeds and numbers are about other runs. */
export const MANAGEMENT_WORKFLOWS: readonly string[] = ['capstan-proposal', 'capstan-goal'];
