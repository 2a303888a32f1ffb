import type { Store } from '../../../store/store.ts';
import type { InboxEntry, InboxSource } from '../../people/inbox/door.ts';
import { type HeldGoal, holdGoal, type Stall } from './document.ts';
import { type DisputedRow, type GoalRow, listDisputed, listEscalated, listStalled } from './records.ts';

const TITLE_CHARS_MAX = 120;

const REASONS: Readonly<Record<NonNullable<HeldGoal['escalation']>['reason'], string>> = {
  'low-confidence': 'A run is unsure',
  undecided: 'The judge cannot decide',
  'no-progress': 'No progress',
  'second-judge': 'The verdict needs a person',
};

const STALLS: Readonly<Record<Stall['status'], string>> = {
  'no-arm': 'Nothing starts it again',
  'cannot-start': 'Cannot start',
  judging: 'The judge takes long',
};

/** What waits for a person: escalated, paused and manual goals, those that nothing starts or judges, and disputed verdicts. */
export function goalInboxSources(store: Store): readonly InboxSource[] {
  const sourceOf = (kind: InboxEntry['kind'], list: InboxSource['list']): InboxSource => ({
    kinds: [kind],
    scope: 'goals:read',
    list,
  });
  return [
    sourceOf('goal', async ({ subject }, before, limit) =>
      (await store.read<GoalRow>(listEscalated(subject, before, limit))).map((row) => escalated(holdGoal(row))),
    ),
    sourceOf('goal', async ({ subject }, before, limit) =>
      (await store.read<GoalRow>(listStalled(subject, before, limit))).map((row) => stalled(holdGoal(row))),
    ),
    sourceOf('dispute', async ({ subject }, before, limit) =>
      (await store.read<DisputedRow>(listDisputed(subject, before, limit))).map(disputed),
    ),
  ];
}

function escalated(goal: HeldGoal): InboxEntry {
  const { row, escalation } = goal;
  return entryOf(goal, escalation ? REASONS[escalation.reason] : 'Stopped', row.stopped_at!);
}

function stalled(goal: HeldGoal): InboxEntry {
  const { row, progress, stall } = goal;
  if (progress.isPaused) return entryOf(goal, 'Paused', row.stalled_at!);
  if (!stall) return entryOf(goal, 'Waits to be started', row.stalled_at!);
  return entryOf(goal, STALLS[stall.status], row.stalled_at!);
}

function entryOf({ row, objective }: HeldGoal, why: string, createdAt: number): InboxEntry {
  return {
    kind: 'goal',
    id: row.goal_id,
    title: `${why}: ${objective}`.slice(0, TITLE_CHARS_MAX),
    createdAt,
    workspace: row.workspace,
    link: `/console/goals/${row.goal_id}`,
    goalId: row.goal_id,
    requiredScope: 'goals:write',
  };
}

function disputed(row: DisputedRow): InboxEntry {
  const { run_id: runId, goal_id: goalId, disputed_at, disputed_by, workspace } = row;
  return {
    kind: 'dispute',
    id: runId,
    title: `${disputed_by} disputes the verdict on ${runId}`,
    createdAt: disputed_at!,
    workspace,
    link: `/console/goals/${goalId}`,
    runId,
    goalId,
    requiredScope: 'feedback:write',
  };
}
