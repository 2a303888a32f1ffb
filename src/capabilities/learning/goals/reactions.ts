import { isTerminal } from '../../../engine/run/run.ts';
import type { RunEvent } from '../../../protocol/running/events.ts';
import type { AppendListener, Hub } from '../../../runtime/hub.ts';
import type { Append, Reaction } from '../../../runtime/reaction.ts';
import type { Write } from '../../../store/sql.ts';
import { GOAL_WORK } from './changes.ts';
import { noteAnswer, noteEnd, noteQuestion, wakeGoalOf } from './question-records.ts';

/**
 * When a contributing run ends, asks because it is unsure, or is answered, the work item of its goal is due. Callers may
 * mark any run as a goal's; only stored rows say which runs contribute, so forks and marked runs have no effect.
 */
export const noteContributions: Reaction = (append) => {
  const { run, identity, events, isInherited } = append;
  if (isInherited || run.facts.fork?.mode === 'replay') return [];
  const ref = { tenant: identity.subject.tenant, runId: run.facts.runId };
  const writes: Write[] = [
    ...events.flatMap((event) => {
      const asked = questionOf(event);
      if (asked !== undefined) return noteQuestion(ref, asked);
      const answered = answerOf(event);
      return answered === undefined ? [] : noteAnswer(ref, answered);
    }),
    ...(isGoalRunOver(append) ? noteEnd(ref, run.updatedAt) : []),
  ];
  return writes.length === 0 ? [] : [...writes, wakeGoalOf(ref, GOAL_WORK)];
};

/** Has this host look for the work item of the goal. */
export function callGoalWorker(hub: Hub): AppendListener {
  return (append) => {
    const concernsGoal = isGoalRunOver(append) || append.events.some((event) => questionOf(event) ?? answerOf(event));
    if (concernsGoal) hub.wakeWorkers(goalIdOf(append) ?? append.run.facts.runId);
  };
}

function isGoalRunOver(append: Append): boolean {
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

/** A timeout is no answer. Whether the interrupt was such a question is stored with the contributing run. */
function answerOf(event: RunEvent): string | undefined {
  if (event.type !== 'interrupt.resolved' || event.payload.reason === 'timeout') return undefined;
  return event.payload.interruptId;
}
