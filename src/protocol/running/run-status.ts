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
export type RunStatus = (typeof RUN_STATUSES)[number];

const TERMINAL: readonly string[] = ['completed', 'failed', 'cancelled'];

export function isTerminalStatus(status: string): boolean {
  return TERMINAL.includes(status);
}
