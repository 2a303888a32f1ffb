import { addUsd } from '../../../engine/models/budget.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { defined } from '../../../protocol/format/json.ts';
import type {
  AgreementPeriod,
  GoldCase,
  GoldTrial,
  GoldTrialRequest,
  JudgeAgreement,
} from '../../../protocol/learning/goals.ts';
import type { Verifier } from '../../../protocol/learning/verifiers.ts';
import { perform } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Store } from '../../../store/store.ts';
import { EVEN_PERIODS } from '../../periods.ts';
import type { Caller } from '../../request.ts';
import { timestamp } from '../../timestamps.ts';
import { type Audit, entryBy } from '../../trust/audit/door.ts';
import type { Trial, TrialRequest, Verifiers } from '../verifiers/door.ts';
import { calibrationFrom, holdGoal, type StoredVerdict } from './document.ts';
import {
  type AgreementRow,
  agreementByPeriod,
  type CalibrationRow,
  calibrate,
  listLatestVerdicts,
  listReviewed,
  listVerdictsOf,
  opinionIn,
  type ReviewPlace,
} from './opinion-records.ts';
import { findGoal, type GoalRow, type GoalRunRow } from './records.ts';
import type { SecondJudges } from './second-judge.ts';

const PERIODS_MAX = 100;
const CRITERIA_VERDICTS = 500;
const CRITERIA_MAX = 100;
/** Cases that are judged again unless the caller says how many. */
const TRIAL_CASES = 20;

/** A verdict, and what people think of it. */
export interface ReviewedVerdict {
  readonly runId: string;
  readonly goalId: string;
  readonly judge: string;
  readonly at: number;
  readonly said: boolean;
  /** What people say that it should have been; undefined if nobody reviewed it. */
  readonly expected?: boolean | undefined;
  readonly reviewedAt?: number | undefined;
  readonly reviewedBy?: string | undefined;
  readonly evidence: StoredVerdict['evidence'];
  readonly isUndecided: boolean;
}

/** What the figures need. */
interface AgreementNeeds {
  readonly verifiers: Pick<Verifiers, 'get' | 'judgedRun' | 'tryJudging'>;
  readonly secondJudges: Pick<SecondJudges, 'recent'>;
  readonly audit: Pick<Audit, 'entry'>;
}

/** What is known about how far people agree with judges. Their disputes make the gold set of a verifier. */
export class Agreement {
  readonly #runtime: Pick<Runtime, 'store' | 'mutex'>;
  readonly #store: Pick<Store, 'read'>;
  readonly #verifiers: AgreementNeeds['verifiers'];
  readonly #secondJudges: Pick<SecondJudges, 'recent'>;
  readonly #audit: AgreementNeeds['audit'];

  constructor(runtime: Pick<Runtime, 'store' | 'mutex'>, { verifiers, secondJudges, audit }: AgreementNeeds) {
    this.#runtime = runtime;
    this.#store = runtime.store;
    this.#verifiers = verifiers;
    this.#secondJudges = secondJudges;
    this.#audit = audit;
  }

  /** The figures of a verifier; one that was removed keeps those of its verdicts. */
  async of(caller: Caller, verifierId: string, period: AgreementPeriod): Promise<JudgeAgreement | Refusal> {
    const { subject } = caller;
    const verifier = await this.#verifiers.get(caller, verifierId);
    const versions = (await this.#store.read<CalibrationRow>(calibrate(subject, verifierId))).map(calibrationFrom);
    if (isRefusal(verifier) && versions.length === 0) return NOT_FOUND;
    const recent = await this.#secondJudges.recent(subject, isRefusal(verifier) ? { id: verifierId } : verifier);
    const sum = (of: (row: (typeof versions)[number]) => number): number =>
      versions.reduce((total, row) => total + of(row), 0);
    const [agreed, disputed] = [sum((row) => row.agreed), sum((row) => row.disputed)];
    return {
      verifierId,
      verdicts: sum((row) => row.verdicts),
      reviewed: agreed + disputed,
      agreed,
      disputed,
      agreementRate: rateOf(agreed, disputed),
      versions,
      periods: await this.#periods(subject, verifierId, period),
      criteria: criteriaOf(await this.#store.read<GoalRunRow>(listVerdictsOf(subject, verifierId, CRITERIA_VERDICTS))),
      recent: { reviewed: recent.reviewed, agreed: recent.agreed, secondJudge: recent.isDoubted },
    };
  }

  /** The gold set of a verifier, the latest review first; one that was removed keeps it. */
  async goldSet(
    caller: Caller,
    verifierId: string,
    before: ReviewPlace | undefined,
    limit: number,
  ): Promise<GoalRunRow[] | Refusal> {
    const rows = await this.#reviewed(caller, verifierId, before, limit);
    const isKnown =
      rows.length > 0 || before !== undefined || !isRefusal(await this.#verifiers.get(caller, verifierId));
    return isKnown ? rows : NOT_FOUND;
  }

  #reviewed(
    { subject }: Caller,
    verifierId: string,
    before: ReviewPlace | undefined,
    limit: number,
  ): Promise<GoalRunRow[]> {
    return this.#store.read<GoalRunRow>(listReviewed(subject, verifierId, before, limit));
  }

  /** Judges the gold set again, with the rubric of the verifier or another one, until the budget is used up. */
  async judgeAgain(
    caller: Caller,
    verifierId: string,
    { rubric, maxCostUsd, limit = TRIAL_CASES }: GoldTrialRequest,
    signal: AbortSignal,
  ): Promise<GoldTrial | Refusal> {
    const verifier = await this.#verifiers.get(caller, verifierId);
    if (isRefusal(verifier)) return verifier;
    if (!caller.scopes.has('runs:create')) return MAY_NOT_SPEND;
    const problem = trialProblem(verifier, rubric);
    if (problem) return refuse('validation_error', problem, { field: rubric === undefined ? 'verifierId' : 'rubric' });
    const spec = rubric === undefined ? verifier : { ...verifier, rubric };
    const entry = entryBy(this.#audit, caller.subject, 'verifier.try', verifierId, { maxCostUsd });
    await perform(this.#runtime, async () => entry);
    const items: GoldTrial['items'] = [];
    let costUsd = 0;
    for (const row of await this.#reviewed(caller, verifierId, undefined, limit)) {
      const asked = { spec, maxCostUsd: addUsd(maxCostUsd, -costUsd), signal };
      const trial = signal.aborted ? OVER : await this.#tryCase(caller, row, asked);
      if (!trial) continue;
      if (trial.overBudget) return trialOf(verifierId, items, costUsd, 'budget');
      costUsd = addUsd(costUsd, trial.costUsd);
      const { said, expected } = opinionIn(row);
      items.push({ runId: row.run_id, expected: expected!, said, ...defined({ now: trial.satisfied }) });
    }
    return trialOf(verifierId, items, costUsd);
  }

  /** Without annotations: what people say about the run would tell the judge what they expect. */
  async #tryCase(
    { subject }: Caller,
    { run_id, goal_id }: GoalRunRow,
    asked: Pick<TrialRequest, 'spec' | 'maxCostUsd' | 'signal'>,
  ): Promise<Trial | undefined> {
    const run = await this.#verifiers.judgedRun(subject, run_id);
    const [goal] = await this.#store.read<GoalRow>(findGoal(subject, goal_id));
    if (!run || !goal) return undefined;
    const { objective } = holdGoal(goal);
    return this.#verifiers.tryJudging(subject, { ...asked, objective, run: { ...run, annotations: [] } });
  }

  /** The latest verdicts of all judges, for those who learn from them. */
  async latest({ tenant, workspace }: Visibility, limit: number): Promise<ReviewedVerdict[]> {
    const rows = await this.#store.read<GoalRunRow>(listLatestVerdicts({ tenant, workspace }, limit));
    return rows.map(reviewedFrom);
  }

  async #periods(from: Visibility, verifierId: string, period: AgreementPeriod): Promise<JudgeAgreement['periods']> {
    const even = EVEN_PERIODS[period];
    const rows = await this.#store.read<AgreementRow>(agreementByPeriod(from, verifierId, even, PERIODS_MAX));
    return rows.map(({ start, agreed, disputed }) => ({
      from: timestamp(start),
      to: timestamp(start + even.widthMs),
      agreed,
      disputed,
      agreementRate: rateOf(agreed, disputed),
    }));
  }
}

/** Why the gold set of a verifier cannot be judged again. */
function trialProblem({ kind }: Verifier, rubric: string | undefined): string | undefined {
  if (kind === 'workflow') return 'A verifier that judges by a workflow cannot be tried.';
  return rubric !== undefined && kind !== 'model' ? `A verifier of kind ${kind} has no rubric.` : undefined;
}

function trialOf(verifierId: string, items: GoldTrial['items'], costUsd: number, stoppedBy?: 'budget'): GoldTrial {
  return {
    verifierId,
    cases: items.length,
    agreedBefore: items.filter(({ said, expected }) => said === expected).length,
    agreedNow: items.filter(({ now, expected }) => now === expected).length,
    costUsd,
    ...defined({ stoppedBy }),
    items,
  };
}

/** A trial asks a model, as runs do. */
const MAY_NOT_SPEND = refuse('forbidden', 'Judging the gold set also needs the scope runs:create.', {
  scopeRequired: 'runs:create',
});

/** A caller who has gone away pays for nothing more. */
const OVER: Trial = { overBudget: true, costUsd: 0 };

function rateOf(agreed: number, disputed: number): number | null {
  return agreed + disputed === 0 ? null : agreed / (agreed + disputed);
}

function reviewedFrom(row: GoalRunRow): ReviewedVerdict {
  const { evidence, undecided } = JSON.parse(row.verdict!) as StoredVerdict;
  return {
    runId: row.run_id,
    goalId: row.goal_id,
    judge: row.judge!,
    at: row.judged_at!,
    ...opinionIn(row),
    evidence,
    isUndecided: undecided !== undefined,
  };
}

/** A case of a gold set as callers see it. */
export function goldCaseFrom(row: GoalRunRow): GoldCase {
  const { runId, goalId, judge, at, said, expected, evidence, reviewedAt, reviewedBy } = reviewedFrom(row);
  return {
    runId,
    goalId,
    judge,
    at: timestamp(at),
    said,
    expected: expected!,
    evidence,
    reviewedAt: timestamp(reviewedAt!),
    ...defined({ reviewedBy }),
  };
}

function criteriaOf(rows: readonly GoalRunRow[]): JudgeAgreement['criteria'] {
  const found = rows.map(reviewedFrom).flatMap((verdict) => {
    const isDisputed = verdict.expected !== undefined && verdict.expected !== verdict.said;
    return verdict.evidence.map(({ key, met }) => ({ key, met, isDisputed }));
  });
  return [...Map.groupBy(found, ({ key }) => key)]
    .map(([key, all]) => ({
      key,
      verdicts: all.length,
      unmet: all.filter(({ met }) => !met).length,
      disputedUnmet: all.filter(({ met, isDisputed }) => isDisputed && !met).length,
      disputedMet: all.filter(({ met, isDisputed }) => isDisputed && met).length,
    }))
    .sort((a, b) => b.unmet - a.unmet || b.verdicts - a.verdicts || (a.key < b.key ? -1 : 1))
    .slice(0, CRITERIA_MAX);
}
