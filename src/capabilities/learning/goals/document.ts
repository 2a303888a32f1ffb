import type { GoalProgress } from '../../../engine/judging/goal.ts';
import { defined, type JsonObject } from '../../../protocol/format/json.ts';
import type { Goal, GoalEvaluation, GoalEvaluations, GoalPlan, GoalRequest } from '../../../protocol/learning/goals.ts';
import { ownerFrom, timeText } from '../../starting/starter/self-starting.ts';
import type { GoalRow, GoalRunRow, ObjectiveRow } from './records.ts';

/** What is at work for a goal, and whether it goes when the goal has no more use for it. */
export interface Arm {
  readonly ref: string;
  readonly isOwn: boolean;
}

export interface Escalation {
  readonly reason: 'low-confidence' | 'undecided' | 'no-progress';
  readonly at: number;
  readonly runId?: string;
  /** The question that stopped the goal: its answer lets it go on. */
  readonly interruptId?: string;
  readonly detail?: string;
}

/** Everything of a goal that has no column of its own. */
export interface GoalBody {
  readonly objective: string;
  readonly objectiveVersion: number;
  readonly completion: GoalRequest['completion'];
  readonly continuation: GoalRequest['continuation'];
  readonly progress: Omit<GoalProgress, 'state'>;
  readonly plan?: GoalPlan | undefined;
  readonly arm?: Arm | undefined;
  readonly lastVerdict?: { satisfied: boolean; confidence?: number; runId: string } | undefined;
  readonly escalation?: Escalation | undefined;
  /** What a person said when they let it go on. */
  readonly note?: { readonly at: number; readonly by: string; readonly text: string } | undefined;
}

/** A goal as this family works with it. */
export interface HeldGoal extends Omit<GoalBody, 'progress'> {
  readonly row: GoalRow;
  readonly progress: GoalProgress;
}

export function holdGoal(row: GoalRow): HeldGoal {
  const { progress, ...rest } = JSON.parse(row.body) as GoalBody;
  return { ...rest, row, progress: { ...progress, state: row.state } };
}

/** The row that says what the goal says. */
export function rowOf({ row, progress, ...rest }: HeldGoal): GoalRow {
  const { state, ...counts } = progress;
  return { ...row, state, body: JSON.stringify({ ...rest, progress: counts } satisfies GoalBody) };
}

/** The goal as everybody sees it. */
export function goalFrom(held: HeldGoal, contributingRunIds: readonly string[]): Goal {
  const { row, progress, completion, continuation, lastVerdict, arm } = held;
  return {
    id: row.goal_id,
    objective: held.objective,
    state: progress.state,
    completion: {
      check: completion.check,
      verifierRef: completion.verifierRef ?? null,
      lastVerdict: lastVerdict ?? null,
    },
    continuation: { mode: continuation.mode, armRef: arm?.ref ?? continuation.armRef ?? null },
    bounds: progress.bounds,
    progress: { iterations: progress.iterations, contributingRunIds: [...contributingRunIds] },
    owner: ownerFrom(row),
    createdAt: timeText(row.created_at),
    updatedAt: timeText(row.updated_at),
  };
}

/** What a contributing run is told of the goal, under the name `goal`. */
export function briefing({ row, progress, objective, lastVerdict, note }: HeldGoal): JsonObject {
  return {
    id: row.goal_id,
    objective,
    iteration: progress.started + 1,
    lastVerdict: lastVerdict ?? null,
    openCriteria: [...progress.open],
    ...defined({ note: note?.text }),
  };
}

/** What is kept of a verdict, besides what has a column. */
export type KeptVerdict = Omit<GoalEvaluation, 'at' | 'runId' | 'disputedBy'>;

export function evaluationFrom(row: GoalRunRow): GoalEvaluation {
  return {
    at: timeText(row.judged_at!),
    runId: row.run_id,
    ...(JSON.parse(row.verdict!) as KeptVerdict),
    ...(row.disputed_by === null ? {} : { disputedBy: row.disputed_by }),
  };
}

/** What the goal itself has no room for. */
export function factsFrom(
  { row, progress, objectiveVersion, escalation, note }: HeldGoal,
  objectives: readonly ObjectiveRow[],
): Omit<GoalEvaluations, 'items' | 'nextCursor'> {
  return {
    goalId: row.goal_id,
    managementRunId: row.run_id,
    paused: progress.isPaused,
    costUsd: progress.costUsd,
    ...(progress.deadlineAt === undefined ? {} : { deadlineAt: timeText(progress.deadlineAt) }),
    runsStarted: progress.started,
    objectiveVersion,
    objectives: objectives.map(({ version, objective, principal: by, at }) => ({
      version,
      objective,
      at: timeText(at),
      by,
    })),
    ...(escalation
      ? {
          escalation: {
            reason: escalation.reason,
            at: timeText(escalation.at),
            ...defined({ runId: escalation.runId, detail: escalation.detail }),
          },
        }
      : {}),
    ...(note ? { note: { ...note, at: timeText(note.at) } } : {}),
  };
}
