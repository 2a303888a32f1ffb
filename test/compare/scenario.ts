import type { Api } from '../support/api.ts';
import type { CommandResult, Mode } from './checkout.ts';
import type { Role } from './roles.ts';

/** What a scenario can reach: one host, the programs of its checkout, and a place to put what it saw. */
export interface Stage {
  readonly mode: Mode;
  /** Speaks HTTP to the host with the key of a role. */
  as(role: Role): Api;
  readonly anonymous: Api;
  /** Runs the `capstan` command of the checkout against the host. */
  capstan(args: readonly string[], role?: Role): Promise<CommandResult>;
  /** Runs another program of the checkout against the host. */
  program(path: string, role: Role): Promise<CommandResult>;
  /** Keeps a document for the comparison, as it is at this moment. */
  record(name: string, document: unknown): void;
}

/** A named series of requests whose answers are compared. Ids are numbered anew in each. */
export interface Scenario {
  readonly name: string;
  readonly modes: readonly Mode[];
  /** Played only when it is asked for. */
  readonly isSlow?: boolean;
  play(stage: Stage): Promise<void>;
}
