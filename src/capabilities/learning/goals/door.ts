import type { Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type {
  Goal,
  GoalEdit,
  GoalEvaluations,
  GoalPlan,
  GoalRequest,
  JudgeCalibration,
} from '../../../protocol/learning/goals.ts';
import type { Change } from '../../../runtime/change.ts';
import type { StartedRun } from '../../../runtime/start-run.ts';
import { door } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import type { Agreement } from './agreement.ts';
import type { GoalFilter, GoalRunRow } from './records.ts';

/** Objectives that runs work on until a judge is satisfied, a bound is used up or a person is needed. */
export interface Goals {
  create(caller: Caller, request: GoalRequest): Promise<Change<Goal> | Refusal>;
  find(caller: Caller, goalId: string): Promise<Goal | Refusal>;
  list(caller: Caller, filter: GoalFilter, limit: number): Promise<Goal[]>;
  /** What `list` has, without the runs that contributed. */
  completions(caller: Caller, filter: GoalFilter, limit: number): Promise<Pick<Goal, 'id' | 'completion'>[]>;
  /** Changes the objective, the judge or the continuation of an active goal. */
  edit(caller: Caller, goalId: string, edit: GoalEdit): Promise<Change<Goal> | Refusal>;
  /** Starts no more runs until the goal is resumed. */
  pause(caller: Caller, goalId: string): Promise<Change<Goal> | Refusal>;
  /** Continues a paused or escalated goal. The note is passed to the runs that follow. */
  resume(caller: Caller, goalId: string, note: string | undefined): Promise<Change<Goal> | Refusal>;
  abandon(caller: Caller, goalId: string): Promise<Change<Goal> | Refusal>;
  plan(caller: Caller, goalId: string): Promise<GoalPlan | Refusal>;
  setPlan(caller: Caller, goalId: string, plan: GoalPlan): Promise<Change<GoalPlan> | Refusal>;
  /** Starts a contributing run now. */
  start(caller: Caller, goalId: string, inputs: JsonObject | undefined): Promise<Change<StartedRun> | Refusal>;
  /** Verdicts before a number, latest first, and the facts that the goal document has no members for. */
  evaluations(caller: Caller, goalId: string, before: number, limit: number): Promise<GoalVerdicts | Refusal>;
  /** How often people agree with each judge. */
  calibration(caller: Caller): Promise<JudgeCalibration[]>;
  /** How far people agree with verifiers, and the verdicts that they reviewed. */
  readonly agreement: Pick<Agreement, 'of' | 'goldSet' | 'judgeAgain' | 'latest'>;
}

/** The door to goals. */
export const Goals = door<Goals>()('goals');

export type { ReviewedVerdict } from './agreement.ts';

/** A page of verdicts. */
export interface GoalVerdicts {
  readonly facts: Omit<GoalEvaluations, 'items' | 'nextCursor'>;
  readonly rows: readonly GoalRunRow[];
}
