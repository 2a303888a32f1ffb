import { isTerminal } from '../../../engine/run/run.ts';
import type { AppendListener, Hub } from '../../../runtime/hub.ts';
import type { Append, Reaction } from '../../../runtime/reaction.ts';
import { JUDGE_MARK } from './judging.ts';
import { deleteJudgingRun, wakeWaiting } from './records.ts';

/** When a judging run ends, the work item that waits for its verdict is woken in the same unit. */
export const wakeWaitingFor: Reaction = (append) => {
  if (!hasJudgingEnded(append)) return [];
  const run = { tenant: append.identity.subject.tenant, runId: append.run.facts.runId };
  return [wakeWaiting(run), deleteJudgingRun(run)];
};

/** Has this host look for the work item that was woken. */
export function announceVerdict(hub: Hub): AppendListener {
  return (append) => {
    // The run itself is still in hand, so its own id would wake nobody else.
    if (hasJudgingEnded(append)) hub.wakeWorkers(String(append.run.facts.metadata?.goalId));
  };
}

/** Callers may set this mark too; it has an effect only on runs that a stored row says are waited for. */
function hasJudgingEnded({ run, isInherited }: Append): boolean {
  return !isInherited && isTerminal(run) && typeof run.facts.metadata?.[JUDGE_MARK] === 'string';
}
