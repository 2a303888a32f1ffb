/** Statuses of a run. */
export const RUN_STATUSES = [
  'pending',
  'running',
  'paused',
  'waiting-approval',
  'waiting-input',
  'waiting-external',
  'completed',
  'failed',
  'cancelling',
  'cancelled',
] as const;
/** One of RUN_STATUSES. */
export type RunStatus = (typeof RUN_STATUSES)[number];

/** How runs come to be: started by a caller or a trigger, by a node of another run, or as a copy of another run. */
export const RUN_ORIGINS = ['direct', 'child', 'fork'] as const;
/** One of RUN_ORIGINS. */
export type RunOrigin = (typeof RUN_ORIGINS)[number];

const TERMINAL: readonly string[] = ['completed', 'failed', 'cancelled'];

/** Whether a run with this status has ended. */
export function isTerminalStatus(status: string): boolean {
  return TERMINAL.includes(status);
}
