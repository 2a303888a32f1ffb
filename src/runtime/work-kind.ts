import type { WorkItem } from '../store/queue.ts';
import type { Clock } from '../system/clock.ts';
import type { Change } from './change.ts';

/**
 * What came of a work item: the change it makes, and when it is due again; without `dueAgainAt` it is finished. Nobody waits
 * for an answer, so a change that only records a refusal is committed like any other.
 */
export interface WorkResult {
  readonly change?: Change<unknown> | undefined;
  readonly dueAgainAt?: number | undefined;
}

/**
 * Handles work items of one kind. Its change is committed in the unit that finishes or reschedules the item; after a
 * conflict the handler is called again.
 */
export type WorkHandler = (item: WorkItem) => Promise<WorkResult>;

/** A kind of work item. */
export interface WorkKind {
  readonly handle: WorkHandler;
  /** Concurrency limit: at this many active items no more are claimed, so that slow ones do not starve others. */
  readonly atOnce?: number;
}

/** Items of a capability that is switched off are looked at this often: it may be switched on again. */
const POSTPONED_MS = 10 * 60_000;

/** Handles the work of a capability that is switched off: it waits. */
export function postpone(clock: Clock): WorkHandler {
  return async () => ({ dueAgainAt: clock.now() + POSTPONED_MS });
}
