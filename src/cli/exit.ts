import { isTerminalStatus } from '../protocol/running/run-status.ts';

/** How a command ends. */
export const EXIT = {
  /** Done, or applied. */
  done: 0,
  /** Refused, rejected or failed. */
  refused: 1,
  usage: 2,
  /** Still running, or waiting for somebody. */
  waiting: 3,
  unreachable: 4,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export function exitOfRun(status: string): ExitCode {
  if (status === 'completed') return EXIT.done;
  return isTerminalStatus(status) ? EXIT.refused : EXIT.waiting;
}

/** The command was not called as it has to be. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
