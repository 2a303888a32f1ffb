import type { GoalProgress } from '../../../engine/judging/goal.ts';
import { defined, type JsonObject } from '../../../protocol/format/json.ts';
import type {
  Goal,
  GoalEvaluation,
  GoalEvaluations,
  GoalPlan,
  GoalRequest,
  GoalStanding,
  JudgeCalibration,
} from '../../../protocol/learning/goals.ts';
import { ownerFrom } from '../../subject-columns.ts';
import { timestamp } from '../../timestamps.ts';
import type { CalibrationRow } from './opinion-records.ts';
import type { GoalRow, GoalRunRow, ObjectiveRow } from './records.ts';

/** The starter that starts runs of a goal, and whether the goal created it: then it is removed, not given back. */
export interface Arm {
  readonly ref: string;
  readonly isOwn: boolean;
}

/** Why a goal waits for a person. */
export interface Escalation {
  readonly reason: 'low-confidence' | 'undecided' | 'no-progress' | 'second-judge';
  readonly at: number;
  readonly runId?: string;
  /** The interrupt that escalated the goal: its answer reopens it. */
  readonly interruptId?: string;
  readonly detail?: string;
}

/** Why nothing starts the runs of an active goal, or that its judge takes too long. */
export interface Stall {
  readonly status: 'cannot-start' | 'no-arm' | 'judging';
  readonly reason: string;
  readonly at: number;
}

/** The members of a goal that have no column of their own. */
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
  readonly stall?: Stall | undefined;
  /** Principals and persons who wrote the objective or the plan: they count as initiators of its runs. */
  readonly authors?: readonly string[] | undefined;
  /** What a person said when they resumed the goal. */
  readonly note?: { readonly at: number; readonly by: string; readonly text: string } | undefined;
}

/** A goal as it was read, with its row. */
export interface HeldGoal extends Omit<GoalBody, 'progress'> {
  readonly row: GoalRow;
  readonly progress: GoalProgress;
}

/** Reads the members of a goal from its row. */
export function holdGoal(row: GoalRow): HeldGoal {
  const { progress, ...rest } = JSON.parse(row.body) as GoalBody;
  return { ...rest, row, progress: { ...progress, state: row.state } };
}

/** A goal as callers see it. */
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
    createdAt: timestamp(row.created_at),
    updatedAt: timestamp(row.updated_at),
  };
}

/** The input `goal` of contributing runs. */
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

/** The members of a verdict that have no column of their own. */
export type StoredVerdict = Omit<GoalEvaluation, 'at' | 'runId' | 'disputedBy'>;

/** A verdict as callers see it. */
export function evaluationFrom(row: GoalRunRow): GoalEvaluation {
  return {
    at: timestamp(row.judged_at!),
    runId: row.run_id,
    ...(JSON.parse(row.verdict!) as StoredVerdict),
    ...(row.disputed_by === null ? {} : { disputedBy: row.disputed_by }),
  };
}

/** Facts about a goal that its document, which the protocol defines, has no members for. */
export function factsFrom(
  goal: HeldGoal,
  objectives: readonly ObjectiveRow[],
  standing: GoalStanding | undefined,
): Omit<GoalEvaluations, 'items' | 'nextCursor'> {
  const { row, progress, objectiveVersion, escalation, note } = goal;
  return {
    goalId: row.goal_id,
    managementRunId: row.run_id,
    ...defined({ standing }),
    paused: progress.isPaused,
    costUsd: progress.costUsd,
    ...(progress.deadlineAt === undefined ? {} : { deadlineAt: timestamp(progress.deadlineAt) }),
    runsStarted: progress.started,
    objectiveVersion,
    objectives: objectives.map(({ version, objective, principal: by, at }) => ({
      version,
      objective,
      at: timestamp(at),
      by,
    })),
    ...(escalation
      ? {
          escalation: {
            reason: escalation.reason,
            at: timestamp(escalation.at),
            ...defined({ runId: escalation.runId, detail: escalation.detail }),
          },
        }
      : {}),
    ...(note ? { note: { ...note, at: timestamp(note.at) } } : {}),
  };
}

/** How often people agreed with a judge, as callers see it. */
export function calibrationFrom({ judge, verdicts, agreed, disputed }: CalibrationRow): JudgeCalibration {
  const opinions = agreed + disputed;
  return { judge, verdicts, agreed, disputed, agreementRate: opinions === 0 ? null : agreed / opinions };
}
