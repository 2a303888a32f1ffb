import { escalate, type GoalProgress, judge, remainingCostUsd } from '../../../engine/judging/goal.ts';
import { addUsd } from '../../../engine/models/budget.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import { deepEqual, defined } from '../../../protocol/format/json.ts';
import type { NewEvent } from '../../../protocol/running/events.ts';
import { and, type Change, changeOf, unchanged, withResult } from '../../../runtime/change.ts';
import { costOfRun, type RunCost } from '../../../runtime/run-cost.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { RunRef } from '../../../store/log.ts';
import { redactText } from '../../../system/redaction.ts';
import { TemporaryFailure } from '../../../system/temporary-failure.ts';
import { subjectOf } from '../../subject-columns.ts';
import { HOST_ACTOR } from '../../trust/audit/door.ts';
import type { Judgement, Pending, Undecided, Verdict, Verifiers } from '../verifiers/door.ts';
import type { GoalChanges } from './changes.ts';
import type { Escalation, HeldGoal, StoredVerdict } from './document.ts';
import { awaitPerson, stopAwaitingPerson } from './opinion-records.ts';
import { type GoalRunRow, noteJudging, noteVerdict } from './records.ts';
import { type Doubt, inWords, type SecondJudges } from './second-judge.ts';
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
  /** The verdict that somebody else has to agree with. */
  readonly doubted?: DoubtedVerdict;
}

/** Which version of the objective is judged, and by whom. */
type Question = Pick<HeldGoal, 'objectiveVersion' | 'completion'>;

/** A verdict of a judge that people often disagree with, and who has to agree. */
interface DoubtedVerdict extends Question, Doubt {
  readonly first: Verdict;
  /** When a person was asked. */
  readonly askedAt?: number;
}

const UNTRIED: JudgingState = { tries: 0, costUsd: 0 };

/** A contributing run that has ended, with what is known about judging it. */
interface JudgingCase {
  readonly goal: HeldGoal;
  readonly ref: RunRef;
  readonly row: GoalRunRow;
  /** The state as it is stored; a change of it expects this text. */
  readonly stored: string | null;
  readonly state: JudgingState;
  readonly spent: RunCost;
}

/** What judging goals needs. */
interface GoalJudgingNeeds {
  readonly verifiers: Pick<Verifiers, 'judge' | 'judgedRun'>;
  readonly secondJudges: Pick<SecondJudges, 'doubtOf'>;
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
  async judge(goal: HeldGoal, row: GoalRunRow): Promise<Change<Step> | Refusal> {
    const { tenant, run_id: runId, judging: stored } = row;
    const state: JudgingState = stored === null ? { ...UNTRIED, since: this.#now() } : JSON.parse(stored);
    const ref = { tenant, runId };
    const its: JudgingCase = { goal, ref, row, stored, state, spent: await costOfRun(this.#runtime, ref) };
    if (state.doubted && !isSameQuestion(state.doubted, goal)) return this.#startAgain(its, state.costUsd);
    if (state.doubted && state.doubted.by === undefined) return this.#askPerson(its, state.doubted);
    if ((state.notBefore ?? 0) > this.#now()) return this.#wait(its, state.notBefore!);
    const judgement = await this.#ask(its);
    if ('pending' in judgement) return this.#await(its, judgement.pending);
    const costUsd = addUsd(state.costUsd, judgement.costUsd ?? 0);
    if (state.pending && !isSameQuestion(state.pending, goal)) {
      return this.#startAgain(its, costUsd);
    }
    if ('undecided' in judgement && this.#mayTryAgain(its, costUsd)) {
      const pauseMs = this.#needs.settings.judgeRetryMs * 2 ** state.tries;
      const again = { ...asked(state), tries: state.tries + 1, costUsd, notBefore: this.#now() + pauseMs };
      return this.#note(its, again, 'more');
    }
    if (state.doubted) return this.#compare(its, state.doubted, judgement, costUsd);
    return (await this.#doubt(its, judgement, costUsd)) ?? this.#conclude(its, judgement, costUsd);
  }

  /** The objective or the judge has changed: what was said before is about something else. */
  #startAgain(its: JudgingCase, costUsd: number): Change<Step> {
    const { since, tries } = its.state;
    return and(
      this.#note(its, { ...defined({ since }), tries, costUsd }, 'more'),
      changeOf(undefined, [stopAwaitingPerson(its.ref)]),
    );
  }

  /** A verdict of a judge that people often disagree with is not enough: another judge or a person must agree. */
  async #doubt(its: JudgingCase, first: Verdict | Undecided, costUsd: number): Promise<Change<Step> | undefined> {
    const { goal, state } = its;
    if ('undecided' in first || goal.completion.check !== 'verifier') return undefined;
    const doubt = await this.#needs.secondJudges.doubtOf(subjectOf(goal.row), first);
    if (!doubt) return undefined;
    const { objectiveVersion, completion } = goal;
    const doubted = { first, ...doubt, objectiveVersion, completion };
    return this.#note(its, { ...defined({ since: state.since }), tries: 0, costUsd, doubted }, 'more');
  }

  /** Two judges that agree have decided; otherwise a person decides. */
  #compare(
    its: JudgingCase,
    { by: _by, ...doubted }: DoubtedVerdict,
    second: Verdict | Undecided,
    costUsd: number,
  ): Promise<Change<Step> | Refusal> | Change<Step> {
    const { first } = doubted;
    if (!('undecided' in second) && second.satisfied === first.satisfied) {
      return this.#conclude(its, first, costUsd, { judge: second.judge, satisfied: second.satisfied });
    }
    const why = `${doubted.why} ${otherOpinion(second)}`;
    const state = { ...defined({ since: its.state.since }), tries: 0, costUsd, doubted: { ...doubted, why } };
    return this.#note(its, state, 'more');
  }

  /**
   * Escalates the goal until a person has decided. A goal that is resumed without that goes on as if the run had not
   * satisfied it: nobody has agreed with the verdict.
   */
  async #askPerson(its: JudgingCase, doubted: DoubtedVerdict): Promise<Change<Step> | Refusal> {
    const { goal, ref, row, stored, state } = its;
    const { first, why: detail, askedAt } = doubted;
    if (row.expected !== null) {
      const satisfied = row.expected === 1;
      return this.#conclude(its, { ...first, satisfied }, state.costUsd, {
        judge: `person:${row.opinion_by}`,
        satisfied,
        said: first.satisfied,
      });
    }
    if (askedAt !== undefined) {
      const evidence = [
        ...first.evidence,
        { key: 'second-judge', met: false, detail: 'Nobody agreed with the verdict.' },
      ];
      return this.#conclude(its, { ...first, satisfied: false, evidence }, state.costUsd);
    }
    const at = this.#now();
    const moved = await this.#needs.changes.move(goal, {
      after: {
        ...judgedAfter(goal),
        progress: escalate(goal.progress),
        escalation: { reason: 'second-judge', at, runId: ref.runId, detail },
      },
      actor: HOST_ACTOR,
      action: 'goal.escalate',
      details: { runId: ref.runId, reason: 'second-judge' },
      writes: [
        awaitPerson(ref),
        noteJudging(ref, stored, JSON.stringify({ ...state, doubted: { ...doubted, askedAt: at } })),
      ],
    });
    return isRefusal(moved) ? moved : withResult(moved, (): Step => 'more');
  }

  async #ask({ goal, ref, state, spent }: JudgingCase): Promise<Judgement> {
    const { verifiers } = this.#needs;
    const { row, completion, plan, objective, objectiveVersion } = goal;
    const left = remainingCostUsd(goal.progress);
    try {
      const run = await verifiers.judgedRun({ tenant: ref.tenant }, ref.runId);
      if (!run) return { undecided: true, reason: 'The run has expired.' };
      return await verifiers.judge(subjectOf(row), {
        check: state.doubted ? 'verifier' : completion.check,
        verifierRef: state.doubted?.by ?? completion.verifierRef,
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
      if (error instanceof TemporaryFailure) throw error;
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
    second?: SecondOpinion,
  ): Promise<Change<Step> | Refusal> {
    const { runId } = ref;
    const said = second?.said;
    const verdict: StoredVerdict = {
      ...verdictOf(goal, judgement, addUsd(spent.costUsd, judgingUsd)),
      ...(second ? { secondJudge: { judge: second.judge, satisfied: second.satisfied } } : {}),
    };
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
      events: [...(isOverruled(second) ? [] : verifiedBy(goal, verdict, runId)), { type: 'goal.evaluated', payload }],
      writes: [noteVerdict(ref, { verdict: JSON.stringify(verdict), judge: name, satisfied, said, at: this.#now() })],
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

/** What the second judge said; `said` is what the first one had said if a person decided. */
interface SecondOpinion {
  readonly judge: string;
  readonly satisfied: boolean;
  readonly said?: boolean;
}

/** Whether a person decided against the judge. */
function isOverruled(second: SecondOpinion | undefined): boolean {
  return second?.said !== undefined && second.said !== second.satisfied;
}

function otherOpinion(second: Verdict | Undecided): string {
  if (!('undecided' in second)) return `${second.judge} says ${inWords(second.satisfied)}.`;
  return `The second judge could not decide: ${redactText(second.reason).slice(0, DETAIL_CHARS_MAX)}`;
}

/** What stays of judging when a judge is asked once more. */
function asked({ since, doubted }: JudgingState): Pick<JudgingState, 'since' | 'doubted'> {
  return defined({ since, doubted });
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
