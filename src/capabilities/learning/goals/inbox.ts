import type { Store } from '../../../store/store.ts';
import type { InboxEntry, InboxSource } from '../../people/inbox/door.ts';
import { type HeldGoal, holdGoal } from './document.ts';
import { type GoalRow, type GoalRunRow, listDisputed, listEscalated } from './records.ts';

const TITLE_CHARS_MAX = 120;

const REASONS: Readonly<Record<NonNullable<HeldGoal['escalation']>['reason'], string>> = {
  'low-confidence': 'A run is unsure',
  undecided: 'The judge cannot decide',
  'no-progress': 'No progress',
};

/** What waits for a person: escalated goals, and verdicts that somebody disputes. */
export function goalInboxSources(store: Store): readonly InboxSource[] {
  return [
    async ({ subject }, before, limit) =>
      (await store.read<GoalRow>(listEscalated(subject, before, limit))).map((row) => escalated(holdGoal(row))),
    async ({ subject }, before, limit) =>
      (await store.read<GoalRunRow>(listDisputed(subject, before, limit))).map(disputed),
  ];
}

function escalated({ row, objective, escalation }: HeldGoal): InboxEntry {
  return {
    kind: 'goal',
    id: row.goal_id,
    title: `${escalation ? REASONS[escalation.reason] : 'Stopped'}: ${objective}`.slice(0, TITLE_CHARS_MAX),
    createdAt: row.stopped_at!,
    link: `/console/goals/${row.goal_id}`,
    goalId: row.goal_id,
    requiredScope: 'goals:write',
  };
}

function disputed({ run_id: runId, goal_id: goalId, disputed_at, disputed_by }: GoalRunRow): InboxEntry {
  return {
    kind: 'dispute',
    id: runId,
    title: `${disputed_by} disputes the verdict on ${runId}`,
    createdAt: disputed_at!,
    link: `/console/goals/${goalId}`,
    runId,
    goalId,
    requiredScope: 'feedback:write',
  };
}
