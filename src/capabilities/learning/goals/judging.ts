import { type GoalProgress, judge, remainingCostUsd } from '../../../engine/judging/goal.ts';
import { addUsd } from '../../../engine/models/budget.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import { deepEqual, defined } from '../../../protocol/format/json.ts';
import type { NewEvent } from '../../../protocol/running/events.ts';
import { and, type Change, changeOf, unchanged, withResult } from '../../../runtime/change.ts';
import { costOfRun, type RunCost } from '../../../runtime/run-cost.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { RunRef } from '../../../store/log.ts';
import { StoreFailure } from '../../../store/store.ts';
import { redactText } from '../../../system/redaction.ts';
import { subjectOf } from '../../subject-columns.ts';
import { HOST_ACTOR } from '../../trust/audit/door.ts';
import type { Judgement, Pending, Undecided, Verdict, Verifiers } from '../verifiers/door.ts';
import type { GoalChanges } from './changes.ts';
import type { Escalation, HeldGoal, StoredVerdict } from './document.ts';
import { type GoalRunRow, noteJudging, noteVerdict } from './records.ts';
import { type GoalSettings, JUDGING_MS } from './settings.ts';

/** A judging run wakes the goal when it ends; should that get lost, the goal looks for its verdict after this time. */
const PENDING_CHECK_MS = 10 * 60_000;
const DETAIL_CHARS_MAX = 500;

/** Whether there may be more to do for a goal now, or until when it can be left alone. */
export type Step = 'more' | { readonly until: number | undefined };

/** How far judging a run has come, as long as there is no verdict. */
interface JudgingState {
  readonly tries: number;
  /** When judging began; unknown where it is older than this member. */
  readonly since?: number;
  /** What judging has cost so far. */
  readonly costUsd: number;
  /** When the judge may be asked again. */
  readonly notBefore?: number;
  /** The judging run, and the question that it was started with. */
  readonly pending?: Question & { readonly runId: string };
}

/** Which version of the objective is judged, and by whom. */
type Question = Pick<HeldGoal, 'objectiveVersion' | 'completion'>;

const UNTRIED: JudgingState = { tries: 0, costUsd: 0 };

/** A contributing run that has ended, with what is known about judging it. */
interface JudgingCase {
  readonly goal: HeldGoal;
  readonly ref: RunRef;
  /** The state as it is stored; a change of it expects this text. */
  readonly stored: string | null;
  readonly state: JudgingState;
  readonly spent: RunCost;
}

/** What judging goals needs. */
interface GoalJudgingNeeds {
  readonly verifiers: Pick<Verifiers, 'judge' | 'judgedRun'>;
  readonly changes: GoalChanges;
  readonly settings: GoalSettings;
}

/** Has contributing runs judged, each once. Whatever goes wrong, no goal is satisfied by it. */
export class GoalJudging {
  readonly #runtime: Runtime;
  readonly #needs: GoalJudgingNeeds;

  constructor(runtime: Runtime, needs: GoalJudgingNeeds) {
    this.#runtime = runtime;
    this.#needs = needs;
  }

  /** The next step of judging a run: start a judging run, wait for it, ask again later, or conclude with a verdict. */
  async judge(goal: HeldGoal, { tenant, run_id: runId, judging: stored }: GoalRunRow): Promise<Change<Step> | Refusal> {
    const state: JudgingState = stored === null ? { ...UNTRIED, since: this.#now() } : JSON.parse(stored);
    const ref = { tenant, runId };
    const its: JudgingCase = { goal, ref, stored, state, spent: await costOfRun(this.#runtime, ref) };
    if ((state.notBefore ?? 0) > this.#now()) return this.#wait(its, state.notBefore!);
    const judgement = await this.#ask(its);
    if ('pending' in judgement) return this.#await(its, judgement.pending);
    const costUsd = addUsd(state.costUsd, judgement.costUsd ?? 0);
    if (state.pending && !isSameQuestion(state.pending, goal)) {
      return this.#note(its, { ...asked(state), tries: state.tries, costUsd }, 'more');
    }
    if ('undecided' in judgement && this.#mayTryAgain(its, costUsd)) {
      const pauseMs = this.#needs.settings.judgeRetryMs * 2 ** state.tries;
      const again = { ...asked(state), tries: state.tries + 1, costUsd, notBefore: this.#now() + pauseMs };
      return this.#note(its, again, 'more');
    }
    return this.#conclude(its, judgement, costUsd);
  }

  async #ask({ goal, ref, state, spent }: JudgingCase): Promise<Judgement> {
    const { verifiers } = this.#needs;
    const { row, completion, plan, objective, objectiveVersion } = goal;
    const left = remainingCostUsd(goal.progress);
    try {
      const run = await verifiers.judgedRun({ tenant: ref.tenant }, ref.runId);
      if (!run) return { undecided: true, reason: 'The run has expired.' };
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
      this.#runtime.log.error({ goalId: row.goal_id, runId: ref.runId, err: error }, 'a judge failed');
      return { undecided: true, reason: 'The judge failed.' };
    }
  }

  /** The judging run starts together with the note that it is waited for. */
  async #await(its: JudgingCase, { runId, change }: Pending['pending']): Promise<Change<Step> | Refusal> {
    const { goal, state } = its;
    const checkAt = this.#now() + PENDING_CHECK_MS;
    if (state.pending?.runId === runId) return this.#wait(its, checkAt);
    const { objectiveVersion, completion } = goal;
    const step: Step = { until: this.#lookAgainAt(its, checkAt) };
    return and(this.#note(its, { ...state, pending: { runId, objectiveVersion, completion } }, step), change);
  }

  /** Waits for the judge until a time. A verdict that takes too long is a stall: the judge may need a person. */
  async #wait(its: JudgingCase, time: number): Promise<Change<Step> | Refusal> {
    const { goal, ref, state } = its;
    if (!this.#mayStall(its) || this.#stallsAt(state) > this.#now()) {
      return unchanged({ until: this.#lookAgainAt(its, time) });
    }
    const reason = `The verdict on ${ref.runId} has been awaited since ${new Date(state.since!).toISOString()}.`;
    const moved = await this.#needs.changes.move(goal, {
      after: { ...goal, stall: { status: 'judging', reason, at: this.#now() } },
      actor: HOST_ACTOR,
      action: 'goal.stall',
      details: { reason },
    });
    return isRefusal(moved) ? moved : withResult(moved, (): Step => 'more');
  }

  #lookAgainAt(its: JudgingCase, time: number): number {
    return earlier(this.#mayStall(its) ? Math.min(time, this.#stallsAt(its.state)) : time, its.goal);
  }

  #mayStall({ goal: { stall, progress }, state }: JudgingCase): boolean {
    return !stall && !progress.isPaused && state.since !== undefined;
  }

  #stallsAt({ since = 0 }: JudgingState): number {
    return since + (this.#needs.settings.judgingMs ?? JUDGING_MS);
  }

  /** An undecided judge is asked again unless that was done often enough or the goal cannot pay for it. */
  #mayTryAgain({ goal: { progress }, state, spent }: JudgingCase, costUsd: number): boolean {
    const { maxCostUsd = Number.POSITIVE_INFINITY } = progress.bounds;
    const isPaidFor = addUsd(progress.costUsd, addUsd(spent.costUsd, costUsd)) < maxCostUsd;
    return isPaidFor && state.tries + 1 < this.#needs.settings.judgeTries;
  }

  /** The verdict, the goal that follows from it and the events about both are one change. */
  async #conclude(
    { goal, ref, spent }: JudgingCase,
    judgement: Verdict | Undecided,
    judgingUsd: number,
  ): Promise<Change<Step> | Refusal> {
    const { runId } = ref;
    const verdict = verdictOf(goal, judgement, addUsd(spent.costUsd, judgingUsd));
    const { satisfied, judge: name, confidence } = verdict;
    const progress = this.#progressBy(goal, verdict, spent);
    const goalId = goal.row.goal_id;
    const payload = { goalId, satisfied, runId, iterations: progress.iterations, ...defined({ confidence }) };
    const lastVerdict = { satisfied, runId, ...defined({ confidence }) };
    const moved = await this.#needs.changes.move(goal, {
      after: { ...judgedAfter(goal), progress, lastVerdict, escalation: this.#escalation(progress, runId, verdict) },
      actor: HOST_ACTOR,
      action: 'goal.evaluate',
      details: { runId, satisfied, judge: name, state: progress.state },
      events: [...verifiedBy(goal, verdict, runId), { type: 'goal.evaluated', payload }],
      writes: [noteVerdict(ref, { verdict: JSON.stringify(verdict), judge: name, satisfied, at: this.#now() })],
      facts: [{ event: 'goal.evaluated', data: payload }],
    });
    return isRefusal(moved) ? moved : withResult(moved, (): Step => 'more');
  }

  #progressBy({ progress }: HeldGoal, verdict: StoredVerdict, spent: RunCost): GoalProgress {
    const judged = {
      satisfied: verdict.satisfied,
      isUndecided: verdict.undecided !== undefined,
      open: verdict.evidence.flatMap(({ key, met }) => (met ? [] : [key])),
      costUsd: verdict.costUsd ?? 0,
      isBudgetExhausted: spent.isBudgetExhausted && progress.bounds.maxCostUsd !== undefined,
    };
    return judge(progress, judged, this.#now(), this.#needs.settings.standstillMax);
  }

  #escalation({ state }: GoalProgress, runId: string, { undecided: detail }: StoredVerdict): Escalation | undefined {
    if (state !== 'escalated') return undefined;
    const reason = detail === undefined ? 'no-progress' : 'undecided';
    return { reason, at: this.#now(), runId, ...defined({ detail }) };
  }

  /** Stores how far judging has come, unless another host has done so in between. */
  #note({ goal, ref, stored }: JudgingCase, state: JudgingState, step: Step): Change<Step> {
    const noted = changeOf(step, [noteJudging(ref, stored, JSON.stringify(state))], { retryOn: ['goal'] });
    return stored === null ? and(noted, this.#needs.changes.judging(goal)) : noted;
  }

  #now(): number {
    return this.#runtime.clock.now();
  }
}

/** The part of a judgement that is stored. An undecided judge has not said that the goal is satisfied. */
function verdictOf(
  { completion, objectiveVersion }: HeldGoal,
  judgement: Verdict | Undecided,
  costUsd: number,
): StoredVerdict {
  const judge = judgement.judge ?? completion.verifierRef ?? completion.check;
  const cost = costUsd > 0 ? { costUsd } : {};
  if ('undecided' in judgement) {
    const undecided = redactText(judgement.reason).slice(0, DETAIL_CHARS_MAX);
    return { satisfied: false, judge, objectiveVersion, evidence: [], undecided, ...cost };
  }
  const { satisfied, confidence, evidence } = judgement;
  return { satisfied, judge, objectiveVersion, evidence: [...evidence], ...defined({ confidence }), ...cost };
}

/** What stays of judging when a judge is asked once more. */
function asked({ since }: JudgingState): Pick<JudgingState, 'since'> {
  return defined({ since });
}

/** The goal once a verdict that took long is there. */
function judgedAfter(goal: HeldGoal): HeldGoal {
  return goal.stall?.status === 'judging' ? { ...goal, stall: undefined } : goal;
}

/** Whether the objective and the judge are still those that a judging run was started with. */
function isSameQuestion(asked: Question, goal: Question): boolean {
  return asked.objectiveVersion === goal.objectiveVersion && deepEqual(asked.completion, goal.completion);
}

/** A goal is looked at again when its deadline passes, at the latest. */
function earlier(time: number, { progress: { deadlineAt = Number.POSITIVE_INFINITY } }: HeldGoal): number {
  return Math.min(time, deadlineAt);
}

/** The verdict as the protocol has it, if a verifier gave it: without what it says. */
function verifiedBy({ completion }: HeldGoal, verdict: StoredVerdict, target: string): NewEvent[] {
  if (completion.check !== 'verifier' || verdict.undecided !== undefined) return [];
  const { judge: agentId, satisfied, confidence, evidence } = verdict;
  const criteria = [...new Set(evidence.map(({ key }) => key))];
  const payload = {
    agentId,
    target,
    verdict: satisfied ? ('pass' as const) : ('fail' as const),
    ...(criteria.length > 0 ? { criteria } : {}),
    ...defined({ confidence }),
  };
  return [{ type: 'agent.verified', payload }];
}
