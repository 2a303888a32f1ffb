import { isTerminal } from '../../../engine/run/run.ts';
import type { RunEvent } from '../../../protocol/running/events.ts';
import type { Append, Reaction } from '../../../runtime/append.ts';
import type { Hub } from '../../../runtime/hub.ts';
import type { Write } from '../../../store/sql.ts';
import { GOAL } from './moves.ts';
import { callForGoalOf, noteAnswer, noteEnd, noteQuestion } from './records.ts';

/**
 * A contributing run has ended, or is too unsure to go on, or was answered: its goal is looked after. Anybody may mark a
 * run as a goal's; only the store says which runs contribute, so forks and look-alikes change nothing.
 */
export const noteContributions: Reaction = (append) => {
  const { run, identity, events, isInherited } = append;
  if (isInherited || run.facts.fork?.mode === 'replay') return [];
  const ref = { tenant: identity.subject.tenant, runId: run.facts.runId };
  const writes: Write[] = [
    ...events.flatMap((event) => {
      const asked = questionOf(event);
      if (asked !== undefined) return [noteQuestion(ref, asked)];
      const answered = answerOf(event);
      return answered === undefined ? [] : [noteAnswer(ref, answered)];
    }),
    ...(isOver(append) ? [noteEnd(ref, run.updatedAt)] : []),
  ];
  return writes.length === 0 ? [] : [...writes, callForGoalOf(ref, GOAL)];
};

/** Has whoever is free look after the goal at once. */
export function tellAttendants(hub: Hub): void {
  hub.onAppend((append) => {
    const isNews = isOver(append) || append.events.some((event) => questionOf(event) ?? answerOf(event));
    if (isNews) hub.callToWork(goalIdOf(append) ?? append.run.facts.runId);
  });
}

function isOver(append: Append): boolean {
  return isTerminal(append.run) && goalIdOf(append) !== undefined;
}

function goalIdOf({ run }: Append): string | undefined {
  const goalId = run.facts.metadata?.goalId;
  return typeof goalId === 'string' ? goalId : undefined;
}

function questionOf(event: RunEvent): string | undefined {
  if (event.type !== 'node.suspended') return undefined;
  const { kind, reason, interruptId } = event.payload;
  return kind === 'low-confidence' || reason === 'low-confidence' ? interruptId : undefined;
}

/** Silence is no answer. Whether it was such a question is what the store says. */
function answerOf(event: RunEvent): string | undefined {
  if (event.type !== 'interrupt.resolved' || event.payload.reason === 'timeout') return undefined;
  return event.payload.interruptId;
}
