import { addUsd } from '../../engine/budget.ts';
import { costLeft, escalate, expire, isClosed, judge, reopen } from '../../engine/goal.ts';
import { isRefusal } from '../../protocol/errors.ts';
import type { NewEvent } from '../../protocol/events.ts';
import { defined } from '../../protocol/json.ts';
import { commitAll } from '../../runtime/command.ts';
import type { WorkHandler } from '../../runtime/executor.ts';
import { costOfRun, type RunCost } from '../../runtime/run-cost.ts';
import type { RunRef } from '../../store/log.ts';
import { StoreFailure } from '../../store/store.ts';
import { redactText } from '../../system/redaction.ts';
import { HOST_ACTOR } from '../audit/service.ts';
import type { Host } from '../capability.ts';
import { subjectOf } from '../self-starting.ts';
import type { Judgement, Undecided, Verdict, VerifierService } from '../verifiers/service.ts';
import type { Arms } from './arms.ts';
import { type Escalation, type HeldGoal, holdGoal, type KeptVerdict } from './document.ts';
import type { Move, Moves } from './moves.ts';
import {
  findGoal,
  findGoalRun,
  findQuestion,
  findUnjudged,
  type GoalRow,
  type GoalRunRow,
  heedQuestions,
  noteJudging,
  noteVerdict,
} from './records.ts';

const STEPS_MAX = 100;
/** A run that judges says when it is done; should that get lost, it is looked for now and then. */
const PENDING_LOOK_MS = 10 * 60_000;
const DETAIL_CHARS_MAX = 500;

/** How far judging a run has come, as long as there is no verdict. */
interface JudgingState {
  readonly tries: number;
  readonly costUsd: number;
  /** Not before then. */
  readonly notBefore?: number;
  /** The run that is to give the verdict. */
  readonly pendingRunId?: string;
}

const UNTRIED: JudgingState = { tries: 0, costUsd: 0 };

export interface AttendNeeds {
  readonly verifiers: Pick<VerifierService, 'judge' | 'judgedRun'>;
  readonly arms: Arms;
  readonly moves: Moves;
}

/** Either something was done, and there may be more to do, or it is time to leave the goal alone until then. */
type Step = 'more' | { readonly until: number | undefined };

/**
 * Looks after a goal: closes it when its time is over, stops it when a run of it is unsure, has runs that have ended
 * judged one after the other, and decides what follows from each verdict. One work item does all of that for a goal, so
 * nothing is decided twice; whatever else happens to the goal meanwhile is seen by its version.
 */
export class Attendant {
  readonly #host: Host;
  readonly #needs: AttendNeeds;

  constructor(host: Host, needs: AttendNeeds) {
    this.#host = host;
    this.#needs = needs;
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
    return ended ? this.#judge(goal, ended) : { until: progress.deadlineAt };
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

  async #judge(goal: HeldGoal, ended: GoalRunRow): Promise<Step> {
    const state: JudgingState = ended.judging === null ? UNTRIED : JSON.parse(ended.judging);
    const { deadlineAt = Number.POSITIVE_INFINITY } = goal.progress;
    if ((state.notBefore ?? 0) > this.#now()) return { until: Math.min(state.notBefore!, deadlineAt) };
    const ref = { tenant: ended.tenant, runId: ended.run_id };
    const spent = await costOfRun(this.#host.runtime, ref);
    const judgement = await this.#ask(goal, ref, state, spent);
    if ('pending' in judgement) {
      const { runId: pendingRunId, writes, committed } = judgement.pending;
      await commitAll(this.#host.runtime.store, [
        ...writes,
        noteJudging(ref, JSON.stringify({ ...state, pendingRunId } satisfies JudgingState)),
      ]);
      committed();
      return { until: Math.min(this.#now() + PENDING_LOOK_MS, deadlineAt) };
    }
    const judgingUsd = addUsd(state.costUsd, judgement.costUsd ?? 0);
    if ('undecided' in judgement && this.#mayTryAgain(goal, state, addUsd(spent.costUsd, judgingUsd))) {
      return this.#tryLater(ref, { tries: state.tries + 1, costUsd: judgingUsd });
    }
    return this.#conclude(goal, ref, judgement, { ...spent, judgingUsd });
  }

  async #ask(goal: HeldGoal, ref: RunRef, { costUsd, pendingRunId }: JudgingState, spent: RunCost): Promise<Judgement> {
    const { verifiers } = this.#needs;
    const { row, completion, plan, objective, objectiveVersion } = goal;
    const left = costLeft(goal.progress);
    try {
      const run = await verifiers.judgedRun({ tenant: ref.tenant }, ref.runId);
      if (!run) return { undecided: true, reason: 'The run is not kept any more.' };
      return await verifiers.judge(subjectOf(row), {
        check: completion.check,
        verifierRef: completion.verifierRef,
        criteria: plan?.criteria,
        goalId: row.goal_id,
        objective,
        objectiveVersion,
        run,
        maxCostUsd: left === undefined ? undefined : Math.max(0, addUsd(left, -addUsd(spent.costUsd, costUsd))),
        wakes: row.goal_id,
        pending: pendingRunId === undefined ? undefined : { runId: pendingRunId },
      });
    } catch (error) {
      if (error instanceof StoreFailure) throw error;
      this.#host.runtime.log.error({ goalId: row.goal_id, runId: ref.runId, err: error }, 'a judge failed');
      return { undecided: true, reason: 'The judge failed.' };
    }
  }

  /** A judge that cannot decide is asked again, unless that has been done often enough or there is nothing left to pay it. */
  #mayTryAgain({ progress }: HeldGoal, { tries }: JudgingState, spentUsd: number): boolean {
    const { maxCostUsd = Number.POSITIVE_INFINITY } = progress.bounds;
    return tries + 1 < this.#host.settings.goals.judgeTries && addUsd(progress.costUsd, spentUsd) < maxCostUsd;
  }

  async #tryLater(ref: RunRef, state: JudgingState): Promise<Step> {
    const { store } = this.#host.runtime;
    const notBefore = this.#now() + this.#host.settings.goals.judgeRetryMs * 2 ** (state.tries - 1);
    await commitAll(store, [noteJudging(ref, JSON.stringify({ ...state, notBefore } satisfies JudgingState))]);
    return 'more';
  }

  /** The verdict, what it makes of the goal and what the log says of both, in one transaction. */
  #conclude(goal: HeldGoal, ref: RunRef, judgement: Verdict | Undecided, spent: RunCost & Judging): Promise<Step> {
    const { runId } = ref;
    const isUndecided = 'undecided' in judgement;
    const satisfied = !isUndecided && judgement.satisfied;
    const evidence = isUndecided ? [] : judgement.evidence;
    const progress = judge(
      goal.progress,
      {
        satisfied,
        isUndecided,
        open: evidence.flatMap(({ key, met }) => (met ? [] : [key])),
        costUsd: addUsd(spent.costUsd, spent.judgingUsd),
        ranOutOfMoney: spent.ranOutOfMoney && goal.progress.bounds.maxCostUsd !== undefined,
      },
      this.#now(),
      this.#host.settings.goals.standstillMax,
    );
    const reason = isUndecided ? redactText(judgement.reason).slice(0, DETAIL_CHARS_MAX) : undefined;
    const confidence = isUndecided ? undefined : judgement.confidence;
    const name = judgement.judge ?? goal.completion.verifierRef ?? goal.completion.check;
    const cost = addUsd(spent.costUsd, spent.judgingUsd);
    const verdict: KeptVerdict = {
      satisfied,
      judge: name,
      objectiveVersion: goal.objectiveVersion,
      evidence: [...evidence],
      ...defined({ confidence, undecided: reason, costUsd: cost > 0 ? cost : undefined }),
    };
    const { iterations, state } = progress;
    const goalId = goal.row.goal_id;
    const event: NewEvent = {
      type: 'goal.evaluated',
      payload: { goalId, satisfied, runId, iterations, ...defined({ confidence }) },
    };
    return this.#move(goal, {
      after: {
        ...goal,
        progress,
        lastVerdict: { satisfied, runId, ...defined({ confidence }) },
        escalation:
          state === 'escalated'
            ? {
                reason: isUndecided ? 'undecided' : 'no-progress',
                at: this.#now(),
                runId,
                ...defined({ detail: reason }),
              }
            : undefined,
      },
      action: 'goal.evaluate',
      details: { runId, satisfied, judge: name, state },
      events: [event],
      writes: [noteVerdict(ref, { verdict: JSON.stringify(verdict), judge: name, satisfied, at: this.#now() })],
      facts: [{ event: 'goal.evaluated', data: event.payload }],
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

interface Judging {
  readonly judgingUsd: number;
}
