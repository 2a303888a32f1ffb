import type { Decision } from '../engine/run/commands.ts';
import type { Run } from '../engine/run/run.ts';
import { isRefusal, type Refusal } from '../protocol/errors.ts';
import type { Visibility } from '../store/log.ts';
import type { Unit } from '../store/sql.ts';
import type { Store } from '../store/store.ts';
import { and, changeOf, commitOrThrow, perform, UnitRefused } from './change.ts';
import { type MovedRun, moveRun } from './move-run.ts';
import type { Runtime } from './runtime.ts';

export { UnitRefused } from './change.ts';
export { cancelChildHandler } from './move-run.ts';
export const commitAll = commitOrThrow;

/** Commits a unit; false when that one of its expectations does not hold, which its maker knows how to deal with. */
export async function commitUnless(broken: string, store: Store, unit: Unit): Promise<boolean> {
  const outcome = await store.commit(unit);
  if (outcome.committed) return true;
  if (outcome.broke === broken) return false;
  throw new UnitRefused(outcome.broke);
}

export type Commanded = MovedRun;

export function command(
  runtime: Runtime,
  visibility: Visibility,
  runId: string,
  decide: (run: Run) => Decision,
  also: (outcome: Commanded) => Unit = () => [],
): Promise<Commanded | Refusal> {
  const attempt = async () => {
    const moved = await moveRun(runtime, visibility, runId, decide);
    return isRefusal(moved) ? moved : and(moved, changeOf(undefined, also(moved.result)));
  };
  return perform(runtime, attempt, { turn: runId });
}
