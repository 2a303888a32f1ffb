import type { ConfigProblem } from '../../../engine/definition/check.ts';
import { unknownOutputs } from '../../../engine/definition/names.ts';
import { criterionReferences } from '../../../engine/judging/verdict.ts';
import { criteriaProblems } from '../../../engine/judging/verifier-spec.ts';
import { maskMembers } from '../../../engine/masking/mask.ts';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { GoalPlan } from '../../../protocol/learning/goals.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Runs } from '../../running/runs/door.ts';
import { subjectOf } from '../../subject-columns.ts';
import { briefing, type HeldGoal } from './document.ts';

/** Checks and shows the plans of goals. */
export class GoalPlans {
  readonly #runtime: Pick<Runtime, 'plans' | 'catalog'>;
  readonly #runs: Pick<Runs, 'check'>;

  constructor(runtime: Pick<Runtime, 'plans' | 'catalog'>, runs: Pick<Runs, 'check'>) {
    this.#runtime = runtime;
    this.#runs = runs;
  }

  /** Refuses a plan by which no run could be started or judged. */
  async check(goal: HeldGoal, plan: GoalPlan): Promise<Refusal | undefined> {
    const [invalid] = criteriaProblems('criteria', plan.criteria);
    if (invalid) return refuseCriterion(invalid);
    const workflow = await this.#runtime.plans.current(subjectOf(goal.row), plan.workflowId);
    if (!workflow) return refuse('validation_error', 'There is no such workflow.', { field: 'workflowId' });
    const reading = plan.criteria.map(({ expression }, index) => ({
      path: `criteria.${index}.expression`,
      references: criterionReferences(expression),
    }));
    const [unmet] = unknownOutputs(workflow.plan.definition, this.#runtime.catalog, reading);
    if (unmet) return refuseCriterion(unmet);
    const inputs = { ...plan.inputs, goal: briefing(goal) };
    return this.#runs.check({ isTest: false }, { inputs, configurable: {} }, workflow.plan);
  }

  /** The plan as callers see it, with the inputs masked that the workflow declares sensitive. */
  async document({ row }: HeldGoal, { inputs, ...plan }: GoalPlan): Promise<GoalPlan> {
    const workflow = inputs && (await this.#runtime.plans.current(subjectOf(row), plan.workflowId));
    if (!workflow) return plan;
    const { sensitive, maskingMode } = workflow.plan;
    return { ...plan, inputs: maskMembers(inputs, (name) => sensitive.has(name), maskingMode, sha256Hex) };
  }
}

function refuseCriterion({ path, message }: ConfigProblem): Refusal {
  return refuse('validation_error', `${path}: ${message}`, { field: path });
}
