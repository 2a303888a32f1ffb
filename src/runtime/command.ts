import { cancelRun, type Decision } from '../engine/run/commands.ts';
import { isTerminal, type Run, statusOf } from '../engine/run/run.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../protocol/errors.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import type { RunStatus } from '../protocol/running/runs.ts';
import type { Visibility } from '../store/log.ts';
import { dropWork, wake } from '../store/queue.ts';
import type { Unit } from '../store/sql.ts';
import type { Store } from '../store/store.ts';
import { sha256Hex } from '../system/digest.ts';
import { announce, appendWrites, recordNow, whereIs } from './append.ts';
import type { WorkHandler } from './executor.ts';
import type { HeldRun } from './run-row.ts';
import type { Runtime } from './runtime.ts';

/** Each try that fails is one that succeeded on another host, or with whoever drives the run. */
const TRIES_MAX = 20;

/** A unit was refused for a reason that whoever made it has to deal with. */
export class UnitRefused extends Error {
  override readonly name = 'UnitRefused';
  readonly broke: string;

  constructor(broke: string) {
    super(`a promise did not hold: ${broke}`);
    this.broke = broke;
  }
}

/** Commits a unit; throws UnitRefused when one of its expectations does not hold. */
export async function commitAll(store: Store, unit: Unit): Promise<void> {
  const outcome = await store.commit(unit);
  if (!outcome.committed) throw new UnitRefused(outcome.broke);
}

/** Commits a unit; false when that one of its expectations does not hold, which its maker knows how to deal with. */
export async function commitUnless(broken: string, store: Store, unit: Unit): Promise<boolean> {
  const outcome = await store.commit(unit);
  if (outcome.committed) return true;
  if (outcome.broke === broken) return false;
  throw new UnitRefused(outcome.broke);
}

export interface Commanded {
  readonly status: RunStatus;
  /** When the events were recorded. */
  readonly at: number;
}

/**
 * The whole write path of whoever is not driving a run: read, decide, append, and start over if somebody else wrote
 * in between. `also` is written in the same transaction, knowing what came of the command.
 */
export function command(
  runtime: Runtime,
  visibility: Visibility,
  runId: string,
  decide: (run: Run) => Decision,
  also: (outcome: Commanded) => Unit = () => [],
): Promise<Commanded | Refusal> {
  return runtime.reader.turns.take(runId, () => attempt(runtime, visibility, runId, decide, also));
}

async function attempt(
  runtime: Runtime,
  visibility: Visibility,
  runId: string,
  decide: (run: Run) => Decision,
  also: (outcome: Commanded) => Unit,
): Promise<Commanded | Refusal> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const row = await runtime.reader.row(visibility, runId);
    if (!row) return NOT_FOUND;
    const held = await runtime.reader.take(row);
    const decision = decide(held.run);
    if (isRefusal(decision)) {
      runtime.reader.give(held);
      return decision;
    }
    if ('refusal' in decision) {
      if (await append(runtime, held, decision.record, () => [])) return decision.refusal;
      continue;
    }
    const outcome = await append(runtime, held, decision, also);
    if (outcome) return outcome;
  }
  // The header keeps this answer from being kept: a retry with the same key means another try.
  return { ...refuse('conflict', 'The run is changing too quickly. Try again.'), headers: { 'Retry-After': '1' } };
}

/** Undefined when somebody else appended first. */
async function append(
  runtime: Runtime,
  held: HeldRun,
  decision: readonly NewEvent[],
  also: (outcome: Commanded) => Unit,
): Promise<Commanded | undefined> {
  const { runId } = held.run.facts;
  const before = whereIs(held.run);
  const at = runtime.clock.now();
  const recorded = decision.map((event) => recordNow(held, event, at, sha256Hex));
  const outcome: Commanded = { status: statusOf(held.run), at };
  try {
    await commitAll(runtime.store, [
      ...appendWrites(held, recorded, before, runtime.reactions),
      // Without its work item, whoever still drives a run that has ended can write nothing more.
      isTerminal(held.run) ? dropWork(runId) : wake(runId),
      ...also(outcome),
    ]);
  } catch (error) {
    if (error instanceof UnitRefused && error.broke === 'sequence') return undefined;
    throw error;
  }
  runtime.reader.give(held);
  announce(runtime, held, recorded, before);
  runtime.hub.callToWork(runId);
  runtime.store.hint([`work:${runId}`]);
  return outcome;
}

/** Cancels a child whose parent no longer waits for it. Cancelling twice is cancelling once. */
export function cancelChildHandler(runtime: Runtime): WorkHandler {
  return async ({ tenant, payload }) => {
    const { childRunId, parentRunId } = JSON.parse(payload) as { childRunId: string; parentRunId: string };
    await command(runtime, { tenant }, childRunId, (run) =>
      cancelRun(run, { reason: 'parent-cancelled', parentRunId }),
    );
    return { writes: [] };
  };
}
