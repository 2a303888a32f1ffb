import { costLeft, startRun } from '../../../engine/judging/goal.ts';
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { Configurable } from '../../../protocol/running/runs.ts';
import { type CreatedRun, createRun } from '../../../runtime/creation.ts';
import type { Unit } from '../../../store/sql.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Runs } from '../../running/runs/door.ts';
import { subjectOf } from '../../starting/starter/self-starting.ts';
import { briefing, type HeldGoal } from './document.ts';
import type { Moves } from './moves.ts';
import { insertGoalRun } from './records.ts';

/** Who starts a contributing run. */
export interface Starting {
  readonly actor: string;
  /** By an arm; people may start several at once unless the plan says how many. */
  readonly isByArm: boolean;
  /** Besides those of the plan. */
  readonly inputs?: JsonObject | undefined;
}

/** A contributing run that is not there yet, and what makes it count once it is. */
export interface PreparedRun {
  readonly created: CreatedRun;
  readonly writes: Unit;
}

/** How contributing runs come about, whoever asks for them. */
export class ContributingRuns {
  readonly #host: Host;
  readonly #runs: Pick<Runs, 'check'>;
  readonly #moves: Moves;

  constructor(host: Host, runs: Pick<Runs, 'check'>, moves: Moves) {
    this.#host = host;
    this.#runs = runs;
    this.#moves = moves;
  }

  async prepare(goal: HeldGoal, { actor, isByArm, inputs }: Starting): Promise<PreparedRun | Refusal> {
    const { runtime } = this.#host;
    const { plan, row } = goal;
    const atOnce = plan?.maxParallel ?? (isByArm ? 1 : Number.POSITIVE_INFINITY);
    const progress = startRun(goal.progress, runtime.clock.now(), atOnce);
    if (isRefusal(progress)) return progress;
    if (!plan) return refuse('conflict', 'The goal has no plan yet.', { state: row.state, reason: 'no-plan' });

    const subject = subjectOf(row);
    const workflow = await runtime.plans.current(subject, plan.workflowId);
    if (!workflow) return noWorkflow(goal);
    const given = { inputs: { ...plan.inputs, ...inputs, goal: briefing(goal) }, configurable: budgetOf(goal) };
    const refusal = this.#runs.check({ isTest: false }, given, workflow.plan);
    if (refusal) return refusal;
    const created = createRun(runtime, {
      subject,
      workflow,
      ...given,
      tags: [`goal:${row.goal_id}`],
      metadata: { goalId: row.goal_id, iteration: progress.started },
      depth: 0,
    });
    const { runId, createdAt } = created.held.run.facts;
    const { goal_id, tenant, workspace } = row;
    return {
      created,
      writes: this.#moves.unit(goal, {
        after: { ...goal, progress },
        actor,
        action: 'goal.run',
        details: { runId, iteration: progress.started },
        writes: [
          insertGoalRun({ run_id: runId, goal_id, tenant, workspace, number: progress.started, started_at: createdAt }),
        ],
      }),
    };
  }
}

/** A run cannot spend more than the goal has left. */
function budgetOf({ progress }: HeldGoal): Configurable {
  const left = costLeft(progress);
  return left === undefined ? {} : { budget: { maxCostUsd: left } };
}

function noWorkflow({ row, plan }: HeldGoal): Refusal {
  const details = { state: row.state, reason: 'no-workflow', workflowId: plan!.workflowId };
  return refuse('conflict', `There is no workflow ${plan!.workflowId} any more.`, details);
}
