import { costLeft, type GoalProgress, judge } from '../../../engine/judging/goal.ts';
import { addUsd } from '../../../engine/models/budget.ts';
import { deepEqual, defined } from '../../../protocol/format/json.ts';
import { commitUnless } from '../../../runtime/command.ts';
import { costOfRun, type RunCost } from '../../../runtime/run-cost.ts';
import type { RunRef } from '../../../store/log.ts';
import type { Unit } from '../../../store/sql.ts';
import { StoreFailure } from '../../../store/store.ts';
import { redactText } from '../../../system/redaction.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import { subjectOf } from '../../starting/starter/self-starting.ts';
import { HOST_ACTOR } from '../../trust/audit/service.ts';
import type { Judgement, Pending, Undecided, Verdict, VerifierService } from '../verifiers/service.ts';
import type { Escalation, HeldGoal, KeptVerdict } from './document.ts';
import type { Moves } from './moves.ts';
import { type GoalRunRow, noteJudging, noteVerdict } from './records.ts';

/** A run that judges says when it is done; should that get lost, it is looked for now and then. */
const PENDING_LOOK_MS = 10 * 60_000;
const DETAIL_CHARS_MAX = 500;

/** Either something was done, and there may be more to do, or the goal can be left alone until then. */
export type Step = 'more' | { readonly until: number | undefined };

/** How far judging a run has come, as long as there is no verdict. */
interface JudgingState {
  readonly tries: number;
  /** What judging has cost so far. */
  readonly costUsd: number;
  /** Not before then. */
  readonly notBefore?: number;
  /** The run that is to give the verdict, and on what. */
  readonly pending?: Question & { readonly runId: string };
}

/** Which wording of the objective is judged, and by whom. */
type Question = Pick<HeldGoal, 'objectiveVersion' | 'completion'>;

const UNTRIED: JudgingState = { tries: 0, costUsd: 0 };

/** A contributing run that has ended, and what is known of it. */
interface Case {
  readonly goal: HeldGoal;
  readonly ref: RunRef;
  /** As the store has it, and what that says. */
  readonly kept: string | null;
  readonly state: JudgingState;
  readonly spent: RunCost;
}

export interface JudgingNeeds {
  readonly verifiers: Pick<VerifierService, 'judge' | 'judgedRun'>;
  readonly moves: Moves;
}

/** Has contributing runs judged, each once. Whatever goes wrong on the way, nothing is satisfied by it. */
export class GoalJudging {
  readonly #host: Host;
  readonly #needs: JudgingNeeds;

  constructor(host: Host, needs: JudgingNeeds) {
    this.#host = host;
    this.#needs = needs;
  }

  async judge(goal: HeldGoal, { tenant, run_id: runId, judging: kept }: GoalRunRow): Promise<Step> {
    const state: JudgingState = kept === null ? UNTRIED : JSON.parse(kept);
    if ((state.notBefore ?? 0) > this.#now()) return { until: earlier(state.notBefore!, goal) };
    const ref = { tenant, runId };
    const its: Case = { goal, ref, kept, state, spent: await costOfRun(this.#host.runtime, ref) };
    const judgement = await this.#ask(its);
    if ('pending' in judgement) return this.#await(its, judgement.pending);
    const costUsd = addUsd(state.costUsd, judgement.costUsd ?? 0);
    if (state.pending && !isSameQuestion(state.pending, goal)) {
      return this.#note(its, { tries: state.tries, costUsd });
    }
    if ('undecided' in judgement && this.#mayTryAgain(its, costUsd)) {
      const pauseMs = this.#host.settings.goals.judgeRetryMs * 2 ** state.tries;
      return this.#note(its, { tries: state.tries + 1, costUsd, notBefore: this.#now() + pauseMs });
    }
    return this.#conclude(its, judgement, costUsd);
  }

  async #ask({ goal, ref, state, spent }: Case): Promise<Judgement> {
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
        maxCostUsd: left === undefined ? undefined : Math.max(0, addUsd(left, -addUsd(spent.costUsd, state.costUsd))),
        wakes: row.goal_id,
        pending: state.pending,
      });
    } catch (error) {
      if (error instanceof StoreFailure) throw error;
      this.#host.runtime.log.error({ goalId: row.goal_id, runId: ref.runId, err: error }, 'a judge failed');
      return { undecided: true, reason: 'The judge failed.' };
    }
  }

  /** A run has to say: it begins with the note that it is waited for, or not at all. */
  async #await(its: Case, { runId, writes, committed }: Pending['pending']): Promise<Step> {
    const { goal, state } = its;
    const until = { until: earlier(this.#now() + PENDING_LOOK_MS, goal) };
    if (state.pending?.runId === runId) return until;
    const { objectiveVersion, completion } = goal;
    if (!(await this.#write(its, { ...state, pending: { runId, objectiveVersion, completion } }, writes)))
      return 'more';
    committed();
    return until;
  }

  /** A judge that cannot decide is asked again, unless that was done often enough or there is nothing left to pay it. */
  #mayTryAgain({ goal: { progress }, state, spent }: Case, costUsd: number): boolean {
    const { maxCostUsd = Number.POSITIVE_INFINITY } = progress.bounds;
    const isPaidFor = addUsd(progress.costUsd, addUsd(spent.costUsd, costUsd)) < maxCostUsd;
    return isPaidFor && state.tries + 1 < this.#host.settings.goals.judgeTries;
  }

  async #note(its: Case, state: JudgingState): Promise<Step> {
    await this.#write(its, state, []);
    return 'more';
  }

  /** False when another host was quicker. */
  #write({ ref, kept }: Case, state: JudgingState, also: Unit): Promise<boolean> {
    return commitUnless('goal', this.#host.runtime.store, [noteJudging(ref, kept, JSON.stringify(state)), ...also]);
  }

  /** The verdict, what it makes of the goal and what the log says of both, in one transaction. */
  async #conclude({ goal, ref, spent }: Case, judgement: Verdict | Undecided, judgingUsd: number): Promise<Step> {
    const { runId } = ref;
    const goalId = goal.row.goal_id;
    const verdict = verdictOf(goal, judgement, addUsd(spent.costUsd, judgingUsd));
    const { satisfied, judge: name, confidence, costUsd = 0, evidence } = verdict;
    const progress = judge(
      goal.progress,
      {
        satisfied,
        isUndecided: verdict.undecided !== undefined,
        open: evidence.flatMap(({ key, met }) => (met ? [] : [key])),
        costUsd,
        ranOutOfMoney: spent.ranOutOfMoney && goal.progress.bounds.maxCostUsd !== undefined,
      },
      this.#now(),
      this.#host.settings.goals.standstillMax,
    );
    const payload = { goalId, satisfied, runId, iterations: progress.iterations, ...defined({ confidence }) };
    const lastVerdict = { satisfied, runId, ...defined({ confidence }) };
    await this.#needs.moves.commit(goal, {
      after: { ...goal, progress, lastVerdict, escalation: this.#escalation(progress, runId, verdict) },
      actor: HOST_ACTOR,
      action: 'goal.evaluate',
      details: { runId, satisfied, judge: name, state: progress.state },
      events: [{ type: 'goal.evaluated', payload }],
      writes: [noteVerdict(ref, { verdict: JSON.stringify(verdict), judge: name, satisfied, at: this.#now() })],
      facts: [{ event: 'goal.evaluated', data: payload }],
    });
    return 'more';
  }

  #escalation({ state }: GoalProgress, runId: string, { undecided: detail }: KeptVerdict): Escalation | undefined {
    if (state !== 'escalated') return undefined;
    const reason = detail === undefined ? 'no-progress' : 'undecided';
    return { reason, at: this.#now(), runId, ...defined({ detail }) };
  }

  #now(): number {
    return this.#host.runtime.clock.now();
  }
}

/** What is kept of what a judge said. Whoever could not decide has not said yes. */
function verdictOf(
  { completion, objectiveVersion }: HeldGoal,
  judgement: Verdict | Undecided,
  costUsd: number,
): KeptVerdict {
  const judge = judgement.judge ?? completion.verifierRef ?? completion.check;
  const cost = costUsd > 0 ? { costUsd } : {};
  if ('undecided' in judgement) {
    const undecided = redactText(judgement.reason).slice(0, DETAIL_CHARS_MAX);
    return { satisfied: false, judge, objectiveVersion, evidence: [], undecided, ...cost };
  }
  const { satisfied, confidence, evidence } = judgement;
  return { satisfied, judge, objectiveVersion, evidence: [...evidence], ...defined({ confidence }), ...cost };
}

/** Whether what was judged is still what the goal is about, and who judged still its judge. */
function isSameQuestion(asked: Question, goal: Question): boolean {
  return asked.objectiveVersion === goal.objectiveVersion && deepEqual(asked.completion, goal.completion);
}

/** The time of a goal may be over before something else is due. */
function earlier(time: number, { progress: { deadlineAt = Number.POSITIVE_INFINITY } }: HeldGoal): number {
  return Math.min(time, deadlineAt);
}
