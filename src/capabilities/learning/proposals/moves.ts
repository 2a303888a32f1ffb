import type { Decision } from '../../../engine/run/decision.ts';
import type { Run } from '../../../engine/run/run.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { and, type Change, withResult } from '../../../runtime/change.ts';
import { type MovedRun, moveRun } from '../../../runtime/move-run.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Visibility } from '../../../store/log.ts';
import { findProposalOfRun, type ProposalRow } from './records.ts';

/** A decision that appends to the management run of a proposal. */
interface ProposalMove<T> {
  readonly events: Decision;
  /** The other parts of the change, given when the run moved and to which status. */
  readonly rest: (moved: MovedRun) => Change<T>;
}

/** What may come of a decision about a proposal: a move of its run, a change without one, or a refusal. */
export type ProposalDecision<T> = ProposalMove<T> | Change<T> | Refusal;

/** Where the management run of a proposal is. */
interface RunPlace {
  readonly from: Visibility;
  readonly runId: string;
}

/** Tells `moveRun` to append nothing; the caller gets the decision instead. */
const NOT_MOVED = refuse('conflict', 'The run of the proposal is not moved.');

/**
 * Decides about a proposal and its management run together. The proposal is read after its run, so a decision never
 * sees a run that is further than its proposal.
 */
export async function moveProposal<T>(
  runtime: Runtime,
  { from, runId }: RunPlace,
  decide: (run: Run, row: ProposalRow) => ProposalDecision<T> | Promise<ProposalDecision<T>>,
): Promise<Change<T> | Refusal> {
  let decided = NOT_FOUND as ProposalDecision<T>;
  const moved = await moveRun(runtime, from, runId, async (run) => {
    const [row] = await runtime.store.read<ProposalRow>(findProposalOfRun(from.tenant, runId));
    decided = row ? await decide(run, row) : NOT_FOUND;
    return isMove(decided) ? decided.events : NOT_MOVED;
  });
  if (!isMove(decided)) return decided;
  if (isRefusal(moved)) return moved;
  const rest = decided.rest(moved.result);
  return withResult(and(moved, rest), () => rest.result);
}

function isMove<T>(decided: ProposalDecision<T>): decided is ProposalMove<T> {
  return 'events' in decided;
}
