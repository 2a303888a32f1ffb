import { cancelRun } from '../engine/run/commands.ts';
import type { Decision } from '../engine/run/decision.ts';
import { isTerminal, type Run, statusOf } from '../engine/run/run.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../protocol/errors.ts';
import { isTerminalEvent, type NewEvent } from '../protocol/running/events.ts';
import type { RunStatus } from '../protocol/running/runs.ts';
import type { Visibility } from '../store/log.ts';
import { dropWork, wake } from '../store/queue.ts';
import { sha256Hex } from '../system/digest.ts';
import { TemporaryFailure } from '../system/temporary-failure.ts';
import { announce, appendWrites, positionOf, recordAndApply } from './append.ts';
import { type Change, changeOf, perform } from './change.ts';
import type { HeldRun } from './run-row.ts';
import type { Runtime } from './runtime.ts';
import type { WorkHandler } from './work-kind.ts';

/** A run that was moved by a command. */
export interface MovedRun {
  readonly status: RunStatus;
  /** When its events were recorded. */
  readonly at: number;
}

/**
 * The one way to move a run from outside, without its lease: fold the run, decide, append at the sequence that was
 * read. Another writer in between breaks the expectation `sequence`, and the decision is taken again. `decide` may read
 * more from the store; the run that it is given is its own until it returns.
 */
export async function moveRun(
  runtime: Runtime,
  visibility: Visibility,
  runId: string,
  decide: (run: Run) => Decision | Promise<Decision>,
): Promise<Change<MovedRun> | Refusal> {
  const row = await runtime.reader.row(visibility, runId);
  if (!row) return NOT_FOUND;
  const held = await runtime.reader.acquire(row);
  const decision = await decide(held.run);
  if (isRefusal(decision)) {
    runtime.reader.release(held);
    return decision;
  }
  const events = 'refusal' in decision ? decision.record : decision;
  if (isLogFull(held.run, events)) {
    runtime.reader.release(held);
    return 'refusal' in decision ? decision.refusal : LOG_FULL;
  }
  if (!('refusal' in decision)) return append(runtime, held, decision);
  return { ...append(runtime, held, events), refusal: decision.refusal };
}

/** Events for each node execution that a run may have, and those that everybody else may add to its log. */
const EVENTS_PER_EXECUTION = 10;
const EVENTS_OF_OTHERS = 10_000;
const LOG_FULL = refuse('conflict', 'The log of this run is full. It can only be cancelled.');

/** Whether callers have appended as much as they may: questions, votes, denied votes, pauses. A run can always end. */
function isLogFull({ sequence, facts }: Run, events: readonly NewEvent[]): boolean {
  const max = EVENTS_PER_EXECUTION * facts.limits.maxNodeExecutions + EVENTS_OF_OTHERS;
  return events.length > 0 && sequence + events.length > max && !events.some(({ type }) => isTerminalEvent(type));
}

/** Appends to a run that is held in memory; the caller must have read it from the store in the same decision. */
function append(runtime: Runtime, held: HeldRun, events: readonly NewEvent[]): Change<MovedRun> {
  const { runId } = held.run.facts;
  const before = positionOf(held.run);
  const at = runtime.clock.now();
  const recorded = events.map((event) => recordAndApply(held, event, at, sha256Hex));
  const writes = [
    ...appendWrites(runtime, held, recorded, before),
    // Without its work item, a host that still drives a run that has ended can write nothing more.
    isTerminal(held.run) ? dropWork(runId) : wake(runId),
  ];
  const tell = (): void => {
    runtime.reader.release(held);
    announce(runtime, held, recorded, before);
    runtime.hub.wakeWorkers(runId);
    runtime.store.hint([`work:${runId}`]);
  };
  return changeOf({ status: statusOf(held.run), at }, writes, { announce: [tell], retryOn: ['sequence'] });
}

/** Handles the work item that cancels a child run whose parent no longer waits for it. Cancelling twice is harmless. */
export function cancelChildHandler(runtime: Runtime): WorkHandler {
  return async ({ tenant, payload }) => {
    const { childRunId, parentRunId } = JSON.parse(payload) as { childRunId: string; parentRunId: string };
    const cancel = (run: Run): Decision => cancelRun(run, { reason: 'parent-cancelled', parentRunId });
    const moved = await perform(runtime, () => moveRun(runtime, { tenant }, childRunId, cancel), {
      mutexKey: childRunId,
    });
    // A child that keeps moving is tried again; one that has ended or is gone needs no cancelling.
    if (isRefusal(moved) && moved.refused === 'conflict') throw new TemporaryFailure(moved.message);
    return {};
  };
}
