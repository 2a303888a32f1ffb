import { escalate, expire, isClosed, reopen } from '../../../engine/judging/goal.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import { and, type Change, perform, unchanged, withResult } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { WorkHandler } from '../../../runtime/work-kind.ts';
import type { Statement } from '../../../store/sql.ts';
import { HOST_ACTOR } from '../../trust/audit/door.ts';
import type { Arms } from './arms.ts';
import type { GoalChanges, GoalMove } from './changes.ts';
import type { Escalation, HeldGoal } from './document.ts';
import type { GoalJudging, Step } from './judging.ts';
import { findQuestion, markQuestionsEscalated } from './question-records.ts';
import type { GoalReader } from './reader.ts';
import { findGoalRun, findUnjudged, type GoalRunRow } from './records.ts';
import { stallWithoutArm } from './standing.ts';

const STEPS_MAX = 100;
const NOTHING_TO_DO: Step = { until: undefined };

/** What the worker is built from. */
interface GoalWorkerParts {
  readonly reader: GoalReader;
  readonly changes: GoalChanges;
  readonly arms: Arms;
  readonly judging: GoalJudging;
}

/**
 * Handles the work item of a goal: closes the goal when its time is over, escalates it when a run is unsure, has ended
 * runs judged one after the other, and decides what follows from each verdict. There is one work item per goal, and every
 * change expects the goal's version: nothing is decided twice.
 */
export class GoalWorker {
  readonly #runtime: Runtime;
  readonly #parts: GoalWorkerParts;

  constructor(runtime: Runtime, parts: GoalWorkerParts) {
    this.#runtime = runtime;
    this.#parts = parts;
  }

  /** Takes one step after the other until the goal has to wait. Each step is a change of its own. */
  readonly handle: WorkHandler = async ({ work_id: goalId, tenant }) => {
    for (let steps = 0; steps < STEPS_MAX; steps++) {
      const step = await perform(this.#runtime, () => this.#decide(tenant, goalId));
      // The executor logs the reason and tries again with backoff.
      if (isRefusal(step)) throw new Error(`goal ${goalId} cannot move: ${step.message}`);
      if (step !== 'more') return { dueAgainAt: step.until };
    }
    return { dueAgainAt: this.#runtime.clock.now() };
  };

  async #decide(tenant: string, goalId: string): Promise<Change<Step> | Refusal> {
    const goal = await this.#parts.reader.load({ tenant }, goalId);
    if (!goal || isClosed(goal.progress)) return unchanged(NOTHING_TO_DO);
    const { row, progress } = goal;
    const expired = expire(progress, this.#runtime.clock.now());
    if (expired !== progress) {
      return this.#move(goal, { after: { ...goal, progress: expired, escalation: undefined }, action: 'goal.close' });
    }
    if (progress.state === 'escalated') return this.#reopenIfAnswered(goal);
    const [question] = await this.#read(findQuestion(row));
    if (question) return this.#escalateFor(goal, question);
    const [ended] = await this.#read(findUnjudged(row));
    return ended ? this.#parts.judging.judge(goal, ended) : this.#noteLostArm(goal);
  }

  /** Notes that the goal's schedule, heartbeat or commitment has finished, so that a person learns that no more runs start. */
  async #noteLostArm(goal: HeldGoal): Promise<Change<Step> | Refusal> {
    const { progress, arm, stall } = goal;
    const { deadlineAt: until, started, iterations, isPaused } = progress;
    const mayBeLost = arm !== undefined && !stall && !isPaused && started === iterations;
    if (!mayBeLost || (await this.#parts.arms.isArmed(goal))) return unchanged({ until });
    const at = this.#runtime.clock.now();
    const reason = "The goal's schedule, heartbeat or commitment has finished; no more runs start.";
    const after: HeldGoal = { ...goal, stall: { status: 'no-arm', reason, at } };
    return this.#move(goal, { after, action: 'goal.stall', details: { reason } });
  }

  /** The answer to the question that escalated a goal reopens it; other escalations are resolved by a person. */
  async #reopenIfAnswered(goal: HeldGoal): Promise<Change<Step> | Refusal> {
    const { row, escalation, progress: before } = goal;
    const waiting: Step = { until: before.deadlineAt };
    if (!escalation || !(await this.#isAnswered(row.tenant, escalation))) return unchanged(waiting);
    const progress = reopen(goal.progress, this.#runtime.clock.now());
    const after: HeldGoal = { ...goal, progress, escalation: undefined };
    const armed = progress.state === 'active' && !progress.isPaused ? await this.#parts.arms.arm(after) : undefined;
    if (!armed || isRefusal(armed)) {
      const at = this.#runtime.clock.now();
      const stall = armed
        ? ({ status: 'cannot-start', reason: armed.message, at } as const)
        : stallWithoutArm({ ...after, arm: undefined }, at);
      return this.#move(goal, { after: { ...after, arm: undefined, stall }, action: 'goal.reopen' });
    }
    const moved = await this.#move(goal, { after: { ...after, arm: armed.arm }, action: 'goal.reopen' });
    return isRefusal(moved) ? moved : and(moved, armed.change);
  }

  /** Whether every question of the run was answered, or the verdict decided, that the goal waits for. */
  async #isAnswered(tenant: string, { reason, runId, interruptId }: Escalation): Promise<boolean> {
    if (runId === undefined || (reason !== 'second-judge' && interruptId === undefined)) return false;
    const [asking] = await this.#read(findGoalRun({ tenant, runId }));
    return reason === 'second-judge' ? asking?.expected != null : asking?.asks == null;
  }

  #escalateFor(goal: HeldGoal, { run_id: runId, asks }: GoalRunRow): Promise<Change<Step> | Refusal> {
    const at = this.#runtime.clock.now();
    const escalation: Escalation = { reason: 'low-confidence', at, runId, interruptId: asks! };
    return this.#move(goal, {
      after: { ...goal, progress: escalate(goal.progress), escalation },
      action: 'goal.escalate',
      details: { runId, reason: escalation.reason },
      writes: [markQuestionsEscalated(goal.row)],
    });
  }

  async #move(goal: HeldGoal, move: Omit<GoalMove, 'actor'>): Promise<Change<Step> | Refusal> {
    const moved = await this.#parts.changes.move(goal, { actor: HOST_ACTOR, ...move });
    return isRefusal(moved) ? moved : withResult(moved, (): Step => 'more');
  }

  #read(statement: Statement): Promise<GoalRunRow[]> {
    return this.#runtime.store.read<GoalRunRow>(statement);
  }
}
