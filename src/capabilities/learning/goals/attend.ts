import { escalate, expire, isClosed, reopen } from '../../../engine/judging/goal.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import type { WorkHandler } from '../../../runtime/executor.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import { HOST_ACTOR } from '../../trust/audit/service.ts';
import type { Arms } from './arms.ts';
import { type Escalation, type HeldGoal, holdGoal } from './document.ts';
import { GoalJudging, type JudgingNeeds, type Step } from './judging.ts';
import type { Move } from './moves.ts';
import {
  findGoal,
  findGoalRun,
  findQuestion,
  findUnjudged,
  type GoalRow,
  type GoalRunRow,
  heedQuestions,
} from './records.ts';

const STEPS_MAX = 100;

export interface AttendNeeds extends JudgingNeeds {
  readonly arms: Arms;
}

/**
 * Looks after a goal: closes it when its time is over, stops it when a run of it is unsure, has runs that have ended
 * judged one after the other, and decides what follows from each verdict. One work item does all of that for a goal, so
 * nothing is decided twice; whatever else happens to the goal meanwhile is seen by its version.
 */
export class Attendant {
  readonly #host: Host;
  readonly #needs: AttendNeeds;
  readonly #judging: GoalJudging;

  constructor(host: Host, needs: AttendNeeds) {
    this.#host = host;
    this.#needs = needs;
    this.#judging = new GoalJudging(host, needs);
  }

  readonly handle: WorkHandler = async ({ work_id: goalId, tenant }) => {
    for (let steps = 0; steps < STEPS_MAX; steps++) {
      const [row] = await this.#read<GoalRow>(findGoal({ tenant }, goalId));
      const step = row ? await this.#step(holdGoal(row)) : { until: undefined };
      if (step !== 'more') return { writes: [], dueAgainAt: step.until };
    }
    return { writes: [], dueAgainAt: this.#now() };
  };

  async #step(goal: HeldGoal): Promise<Step> {
    const { row, progress } = goal;
    if (isClosed(progress)) return { until: undefined };
    if (progress.state === 'escalated') return this.#lookAtEscalated(goal);
    const expired = expire(progress, this.#now());
    if (expired !== progress) return this.#move(goal, { after: { ...goal, progress: expired }, action: 'goal.close' });
    const [question] = await this.#read<GoalRunRow>(findQuestion(row));
    if (question) return this.#stopFor(goal, question);
    const [ended] = await this.#read<GoalRunRow>(findUnjudged(row));
    return ended ? this.#judging.judge(goal, ended) : { until: progress.deadlineAt };
  }

  /** The answer to the question that stopped it lets a goal go on; from every other stop a person leads the way. */
  async #lookAtEscalated(goal: HeldGoal): Promise<Step> {
    const { row, escalation } = goal;
    if (escalation?.interruptId === undefined || escalation.runId === undefined) return { until: undefined };
    const [asking] = await this.#read<GoalRunRow>(findGoalRun({ tenant: row.tenant, runId: escalation.runId }));
    if (asking?.asks === escalation.interruptId) return { until: undefined };
    const progress = reopen(goal.progress, this.#now());
    const after: HeldGoal = { ...goal, progress, escalation: undefined };
    const armed = progress.state === 'active' && !progress.isPaused ? await this.#needs.arms.arm(after) : undefined;
    if (armed && isRefusal(armed)) {
      this.#host.runtime.log.warn({ goalId: row.goal_id, reason: armed.message }, 'a goal goes on without its arm');
    }
    const ready = armed && !isRefusal(armed) ? armed : undefined;
    const step = await this.#move(goal, {
      after: { ...after, arm: ready?.arm },
      action: 'goal.reopen',
      writes: ready?.writes ?? [],
    });
    ready?.committed();
    return step;
  }

  #stopFor(goal: HeldGoal, { run_id: runId, asks }: GoalRunRow): Promise<Step> {
    const escalation: Escalation = { reason: 'low-confidence', at: this.#now(), runId, interruptId: asks! };
    return this.#move(goal, {
      after: { ...goal, progress: escalate(goal.progress), escalation },
      action: 'goal.escalate',
      details: { runId, reason: escalation.reason },
      writes: [heedQuestions(goal.row)],
    });
  }

  /** Whether or not it came to pass, the goal is looked at again: somebody may have been quicker. */
  async #move(goal: HeldGoal, move: Omit<Move, 'actor'>): Promise<Step> {
    await this.#needs.moves.commit(goal, { actor: HOST_ACTOR, ...move });
    return 'more';
  }

  #read<R>(statement: Parameters<Host['runtime']['store']['read']>[0]): Promise<R[]> {
    return this.#host.runtime.store.read<R>(statement);
  }

  #now(): number {
    return this.#host.runtime.clock.now();
  }
}
