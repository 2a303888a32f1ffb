import { remainingCostUsd, startRun } from '../../../engine/judging/goal.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { defined, type JsonObject } from '../../../protocol/format/json.ts';
import type { Configurable } from '../../../protocol/running/runs.ts';
import { type Change, perform, unchanged } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { createHostRun } from '../../host-run.ts';
import type { Runs } from '../../running/runs/door.ts';
import type { RunStart, RunStarter } from '../../starting/starter/door.ts';
import { subjectOf } from '../../subject-columns.ts';
import { HOST_ACTOR } from '../../trust/audit/door.ts';
import { OWNER_KIND } from './arms.ts';
import type { GoalChanges } from './changes.ts';
import { briefing, type HeldGoal } from './document.ts';
import type { GoalReader } from './reader.ts';
import { insertGoalRun } from './records.ts';

/** Who starts a contributing run. */
interface RunInitiator {
  readonly actor: string;
  /** The principal and the person who start it; none for an arm. */
  readonly names?: readonly string[];
  /** An arm starts one run at a time unless the plan says how many; people are not limited. */
  readonly isArm: boolean;
  /** Inputs in addition to those of the plan. */
  readonly inputs?: JsonObject | undefined;
}

/** Reasons for which an arm starts no run although nothing is wrong. */
const ORDINARY: readonly unknown[] = [
  'stopped',
  'paused',
  'maxLoopIterations',
  'maxCostUsd',
  'runTimeoutMs',
  'in-flight',
];

/** Creates the runs that contribute to goals, whoever starts them. */
export class ContributingRuns {
  readonly #runtime: Runtime;
  readonly #runs: Pick<Runs, 'check'>;
  readonly #changes: GoalChanges;

  constructor(runtime: Runtime, runs: Pick<Runs, 'check'>, changes: GoalChanges) {
    this.#runtime = runtime;
    this.#runs = runs;
    this.#changes = changes;
  }

  /** A run that counts for the goal once both parts of the start are committed. */
  async prepare(goal: HeldGoal, initiator: RunInitiator): Promise<RunStart | Refusal> {
    const { plan, row } = goal;
    const atOnce = plan?.maxParallel ?? (initiator.isArm ? 1 : Number.POSITIVE_INFINITY);
    const progress = startRun(goal.progress, this.#runtime.clock.now(), atOnce);
    if (isRefusal(progress)) return progress;
    if (!plan) return withoutPlan(goal);

    const subject = subjectOf(row);
    const workflow = await this.#runtime.plans.current(subject, plan.workflowId);
    if (!workflow) return missingWorkflow(goal, plan.workflowId);
    const inputs = { ...plan.inputs, ...initiator.inputs, goal: briefing(goal) };
    const tags = [`goal:${row.goal_id}`];
    const metadata = { goalId: row.goal_id, iteration: progress.started };
    const initiators = [...new Set([row.principal, ...(goal.authors ?? []), ...(initiator.names ?? [])])];
    const request = { subject, initiators, workflow, inputs, configurable: budgetOf(goal), tags, metadata };
    const created = await createHostRun(this.#runtime, this.#runs, request);
    if (isRefusal(created)) return created;
    const after: HeldGoal = { ...goal, progress, stall: initiator.isArm ? undefined : goal.stall };
    return { created, change: this.#count(goal, after, created.held.run.facts, initiator.actor) };
  }

  /** Records why an arm could not start a run, for people to see; the arm tries again. */
  async noteStall(goal: HeldGoal, { message, details }: Refusal): Promise<Change<unknown> | Refusal> {
    const isExpected = ORDINARY.includes(details?.reason);
    if (isExpected || goal.stall?.reason === message) return unchanged(undefined);
    const stall = { status: 'cannot-start', reason: message, at: this.#runtime.clock.now() } as const;
    return this.#changes.move(goal, {
      after: { ...goal, stall },
      actor: HOST_ACTOR,
      action: 'goal.stall',
      details: { reason: message },
    });
  }

  #count(goal: HeldGoal, after: HeldGoal, run: { readonly runId: string; readonly createdAt: number }, actor: string) {
    const { goal_id, tenant, workspace } = goal.row;
    const { runId: run_id, createdAt: started_at } = run;
    const number = after.progress.started;
    return this.#changes.countRun(goal, {
      after,
      actor,
      action: 'goal.run',
      details: { runId: run_id, iteration: number },
      writes: [insertGoalRun({ run_id, goal_id, tenant, workspace, number, started_at })],
    });
  }
}

/** Starts the runs of starters that belong to goals. */
export function goalRunStarter(runtime: Runtime, reader: GoalReader, contributing: ContributingRuns): RunStarter {
  const noteStall = (tenant: string, goalId: string, refusal: Refusal) =>
    perform(runtime, async () => {
      const goal = await reader.load({ tenant }, goalId);
      return goal ? contributing.noteStall(goal, refusal) : NOT_FOUND;
    });
  return {
    ownerKind: OWNER_KIND,
    start: async ({ ownerId, subject: { tenant } }) => {
      const goal = await reader.load({ tenant }, ownerId);
      if (!goal) return NOT_FOUND;
      const start = await contributing.prepare(goal, { actor: HOST_ACTOR, isArm: true });
      if (isRefusal(start)) await noteStall(tenant, ownerId, start);
      return start;
    },
    // Every verdict changes what a heartbeat on the goal itself observes.
    observe: async (ownerId, { tenant }) => {
      const goal = await reader.load({ tenant }, ownerId);
      return defined({ state: goal?.progress.state, iterations: goal?.progress.iterations });
    },
  };
}

/** A run cannot spend more than the goal has left. */
function budgetOf({ progress }: HeldGoal): Configurable {
  const left = remainingCostUsd(progress);
  return left === undefined ? {} : { budget: { maxCostUsd: left } };
}

function withoutPlan({ row }: HeldGoal): Refusal {
  const how = `make one with PUT /v1/host/capstan/goals/${row.goal_id}/plan or \`capstan goals plan\``;
  return refuse('conflict', `The goal has no plan yet: ${how}.`, { state: row.state, reason: 'no-plan' });
}

function missingWorkflow({ row }: HeldGoal, workflowId: string): Refusal {
  const details = { state: row.state, reason: 'no-workflow', workflowId };
  return refuse('conflict', `The workflow ${workflowId} no longer exists.`, details);
}
