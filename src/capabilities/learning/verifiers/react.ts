import { isTerminal } from '../../../engine/run/run.ts';
import type { Append, Reaction } from '../../../runtime/append.ts';
import type { Hub } from '../../../runtime/hub.ts';
import { JUDGE_MARK } from './judging.ts';
import { forgetJudgingRun, wakeWaiting } from './records.ts';

/** A run that was to give a verdict is over: whoever waits for it is woken in the same transaction. */
export const wakeWaitingFor: Reaction = (append) => {
  if (!isJudgingOver(append)) return [];
  const run = { tenant: append.identity.subject.tenant, runId: append.run.facts.runId };
  return [wakeWaiting(run), forgetJudgingRun(run)];
};

/** Has whoever is free look for work that was woken. */
export function tellWaiting(hub: Hub): void {
  hub.onAppend((append) => {
    if (isJudgingOver(append)) hub.callToWork(append.run.facts.runId);
  });
}

/** Anybody may mark a run like this; it means something only where the store says that somebody waits for it. */
function isJudgingOver({ run, isInherited }: Append): boolean {
  return !isInherited && isTerminal(run) && typeof run.facts.metadata?.[JUDGE_MARK] === 'string';
}
