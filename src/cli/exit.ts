import { isTerminalStatus } from '../protocol/running/run-status.ts';

/** The exit codes of the `capstan` command; scripts depend on them. */
export const EXIT = {
  /** Succeeded. */
  done: 0,
  /** Refused, rejected or failed. */
  refused: 1,
  /** Wrong command line. */
  usage: 2,
  /** Still running, or waiting for a person. */
  waiting: 3,
  /** The host did not answer. */
  unreachable: 4,
} as const;
/** One of the values of `EXIT`. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** With this code `serve --dev` says to `capstan dev` that it cannot have its port: no change of a file helps. */
export const CANNOT_LISTEN = 5;

/** The exit code for a run with this status: success only when it completed. */
export function exitOfRun(status: string): ExitCode {
  if (status === 'completed') return EXIT.done;
  return isTerminalStatus(status) ? EXIT.refused : EXIT.waiting;
}

/** The command line is wrong; the message says how to fix it. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
