import type { RunEvent } from '../protocol/running/events.ts';
import type { RunStatus } from '../protocol/running/runs.ts';
import type { Write } from '../store/sql.ts';
import type { HeldRun } from './run-row.ts';

/** Events that are committed in one unit, with the run in the state after the last of them. */
export interface Append extends HeldRun {
  readonly events: readonly RunEvent[];
  /** The status before the first event; undefined if the run did not exist. */
  readonly before?: RunStatus | undefined;
  /** The events are copied from the run that this one forks or replays: reactions must not notify anybody of them. */
  readonly isInherited: boolean;
}

/** Writes of a capability that are committed with every append: deliveries, projections, audit entries. */
export type Reaction = (append: Append) => readonly Write[];
