import { criteriaProblems } from '../../../engine/judging/verifier-spec.ts';
import { maskMembers } from '../../../engine/masking/mask.ts';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { GoalPlan } from '../../../protocol/learning/goals.ts';
import type { Plans } from '../../../runtime/plans.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Runs } from '../../running/runs/door.ts';
import { subjectOf } from '../../subject-columns.ts';
import { briefing, type HeldGoal } from './document.ts';

/** Checks and shows the plans of goals. */
export class GoalPlans {
  readonly #plans: Plans;
  readonly #runs: Pick<Runs, 'check'>;

  constructor(plans: Plans, runs: Pick<Runs, 'check'>) {
    this.#plans = plans;
    this.#runs = runs;
  }

  /** Refuses a plan by which no run could be started or judged. */
  async check(goal: HeldGoal, plan: GoalPlan): Promise<Refusal | undefined> {
    const [problem] = criteriaProblems('criteria', plan.criteria);
    if (problem) return refuse('validation_error', `${problem.path}: ${problem.message}`, { field: problem.path });
    const workflow = await this.#plans.current(subjectOf(goal.row), plan.workflowId);
    if (!workflow) return refuse('validation_error', 'There is no such workflow.', { field: 'workflowId' });
    const inputs = { ...plan.inputs, goal: briefing(goal) };
    return this.#runs.check({ isTest: false }, { inputs, configurable: {} }, workflow.plan);
  }

  /** The plan as callers see it, with the inputs masked that the workflow declares sensitive. */
  async document({ row }: HeldGoal, { inputs, ...plan }: GoalPlan): Promise<GoalPlan> {
    const workflow = inputs && (await this.#plans.current(subjectOf(row), plan.workflowId));
    if (!workflow) return plan;
    const { sensitive, maskingMode } = workflow.plan;
    return { ...plan, inputs: maskMembers(inputs, (name) => sensitive.has(name), maskingMode, sha256Hex) };
  }
}
