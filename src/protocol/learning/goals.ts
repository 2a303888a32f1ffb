import { type Static, Type } from 'typebox';
import { Closed, MapOf, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { Owner } from '../running/events.ts';
import { RunId } from '../running/runs.ts';
import { CommitmentRequest } from '../starting/commitments.ts';
import { HeartbeatRequest } from '../starting/heartbeats.ts';
import { Observation } from '../starting/observations.ts';
import { Confidence } from './goal-events.ts';
import { CRITERIA_MAX, Criterion, Evidence } from './verifiers.ts';

const Optional = Type.Optional;
const { intervalSec, state, when } = HeartbeatRequest.properties;
const { intention, at, everySec, predicate, memoryRef } = CommitmentRequest.properties;

/** States of a goal; all but `active` and `escalated` are final. */
export const GOAL_STATES = ['active', 'satisfied', 'escalated', 'abandoned', 'bound-exceeded'] as const;
/** One of GOAL_STATES. */
export type GoalState = (typeof GOAL_STATES)[number];

/** Who decides whether a goal is satisfied: a registered verifier, or the host by the criteria of the plan. */
export const JUDGES = ['verifier', 'host'] as const;
/** What starts the next contributing run. */
export const CONTINUATIONS = ['schedule', 'commitment', 'heartbeat', 'manual'] as const;
/** One of CONTINUATIONS. */
export type Continuation = (typeof CONTINUATIONS)[number];

/** Maximum length of an objective, in characters. */
export const OBJECTIVE_CHARS_MAX = 8_192;
const Ref = Type.Union([Type.String({ minLength: 1, maxLength: 256 }), Type.Null()]);
const Cost = Type.Number({ minimum: 0 });

/** Limits on the resources that a goal may use. */
export const GoalBounds = Closed({
  maxLoopIterations: Optional(Type.Integer({ minimum: 1, description: 'Maximum number of contributing runs' })),
  runTimeoutMs: Optional(Type.Integer({ minimum: 0, description: 'Maximum time since the goal was created' })),
  maxCostUsd: Optional(
    Type.Number({ minimum: 0, description: 'Maximum cost of contributing runs and of judging them' }),
  ),
});
/** Valid bounds; a goal needs at least one of them, which `refuseBounds` checks. */
export type GoalBounds = Static<typeof GoalBounds>;

const completion = {
  check: OneOf(JUDGES, { description: 'Who decides whether the goal is satisfied' }),
  verifierRef: Optional(Ref),
};
const ContinuationBlock = Closed({
  mode: OneOf(CONTINUATIONS, { description: 'What starts the next run' }),
  armRef: Optional(Ref),
});

/** A standing objective that the host works towards with contributing runs. The schema is closed at every level. */
export const Goal = Closed(
  {
    id: NonEmpty,
    objective: Type.String(),
    state: OneOf(GOAL_STATES),
    completion: Closed({
      ...completion,
      lastVerdict: Optional(
        Type.Union([
          Closed({ satisfied: Optional(Type.Boolean()), confidence: Optional(Confidence), runId: Optional(RunId) }),
          Type.Null(),
        ]),
      ),
    }),
    continuation: ContinuationBlock,
    bounds: GoalBounds,
    progress: Optional(
      Closed({
        iterations: Optional(Type.Integer({ minimum: 0 })),
        contributingRunIds: Optional(Type.Array(RunId)),
      }),
    ),
    owner: Owner,
    createdAt: Timestamp,
    updatedAt: Optional(Timestamp),
  },
  { $id: 'Goal' },
);
/** A goal as returned to callers; its plan, history and cost are separate documents. */
export type Goal = Static<typeof Goal>;

/** Members that the author of a goal sets. */
const authored = {
  objective: Type.String({ minLength: 1, maxLength: OBJECTIVE_CHARS_MAX }),
  completion: Closed(completion),
  continuation: ContinuationBlock,
};

/** Creates a goal. */
export const GoalRequest = Closed({ ...authored, bounds: GoalBounds }, { $id: 'GoalRequest' });
/** A valid new goal; the host assigns its id, state and owner. */
export type GoalRequest = Static<typeof GoalRequest>;

/** Changes a goal; omitted members stay unchanged. */
export const GoalEdit = Closed(
  {
    objective: Optional(authored.objective),
    completion: Optional(authored.completion),
    continuation: Optional(authored.continuation),
  },
  { $id: 'GoalEdit' },
);
/** A valid change of a goal; bounds cannot be changed. */
export type GoalEdit = Static<typeof GoalEdit>;

/** A page of goals. */
export const GoalList = Type.Object(
  { goals: Type.Array(Goal), nextCursor: Optional(Type.String()) },
  { $id: 'GoalList' },
);

/** How the host works on a goal: the workflow of its runs, the trigger, and the criteria of success. */
export const GoalPlan = Closed(
  {
    workflowId: Type.String({ minLength: 1, maxLength: 128, description: 'Workflow of the contributing runs' }),
    inputs: Optional(MapOf(Type.Unknown(), { description: 'Inputs of each run, in addition to `goal`' })),
    criteria: Type.Array(Criterion, {
      maxItems: CRITERIA_MAX,
      description: 'Criteria by which the host judges; all must be met',
    }),
    schedule: Optional(
      Closed({
        cron: Type.String({ minLength: 1, maxLength: 256 }),
        timezone: Optional(Type.String({ minLength: 1, maxLength: 64 })),
      }),
    ),
    heartbeat: Optional(
      Closed(
        { intervalSec, observe: Optional(Observation), state, when },
        { description: 'Observes something periodically; the goal itself if `observe` is omitted' },
      ),
    ),
    commitment: Optional(
      Closed(
        { intention, at, everySec, predicate, memoryRef: Optional(memoryRef) },
        { description: 'Starts a run at a time, or when a condition becomes true' },
      ),
    ),
    maxParallel: Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100,
        description:
          'Maximum number of concurrent contributing runs; always 1 for runs started by a schedule, heartbeat or commitment',
      }),
    ),
  },
  { $id: 'GoalPlan' },
);
/** A valid plan; the member named after the continuation mode of the goal configures its trigger. */
export type GoalPlan = Static<typeof GoalPlan>;

/** Resumes a paused or escalated goal. */
export const ResumeGoalRequest = Closed(
  { note: Optional(Type.String({ maxLength: 2_000, description: 'Why the goal is resumed' })) },
  { $id: 'ResumeGoalRequest' },
);

/** Starts a contributing run manually. */
export const GoalRunRequest = Closed(
  { inputs: Optional(MapOf(Type.Unknown(), { description: 'Inputs in addition to those of the plan' })) },
  { $id: 'GoalRunRequest' },
);

/** Why a goal can be escalated to a person. */
export const ESCALATIONS = ['low-confidence', 'undecided', 'no-progress', 'second-judge'] as const;

/** Why work on a goal has stopped until a person decides how to continue. */
export const GoalEscalation = Type.Object({
  reason: OneOf(ESCALATIONS),
  at: Timestamp,
  runId: Optional(RunId),
  detail: Optional(Type.String()),
});

/** How a goal that is not closed can stand. */
export const GOAL_STANDINGS = ['armed', 'running', 'judging', 'waiting-person', 'cannot-start', 'no-arm'] as const;

/** How a goal stands now. */
export const GoalStanding = Type.Object({
  status: OneOf(GOAL_STANDINGS, {
    description:
      '`waiting-person`: a person has to act; `cannot-start`: nothing can start a run; `no-arm`: the schedule, heartbeat or commitment of the goal has finished, so no more runs start',
  }),
  reason: Optional(Type.String()),
});
/** The standing of a goal; `reason` says why it does not go on by itself. */
export type GoalStanding = Static<typeof GoalStanding>;

/** A verdict on a contributing run, as recorded when it was given. */
export const GoalEvaluation = Type.Object(
  {
    at: Timestamp,
    runId: RunId,
    satisfied: Type.Boolean(),
    confidence: Optional(Confidence),
    judge: NonEmpty,
    objectiveVersion: Type.Integer({ minimum: 1 }),
    evidence: Type.Array(Evidence),
    costUsd: Optional(Cost),
    undecided: Optional(Type.String({ description: 'Why the judge could not decide, if so' })),
    disputedBy: Optional(NonEmpty),
    secondJudge: Optional(
      Type.Object(
        { judge: NonEmpty, satisfied: Type.Boolean() },
        {
          description:
            'Who had to agree, because people often disagree with the judge; `person:<principal>` for people',
        },
      ),
    ),
  },
  { $id: 'GoalEvaluation' },
);
/** A recorded verdict; `objectiveVersion` identifies the objective that was judged. */
export type GoalEvaluation = Static<typeof GoalEvaluation>;

/** The history of a goal: verdicts, objectives, escalation and cost. */
export const GoalEvaluations = Type.Object(
  {
    goalId: NonEmpty,
    managementRunId: RunId,
    standing: Optional(GoalStanding),
    paused: Type.Boolean(),
    costUsd: Cost,
    deadlineAt: Optional(Timestamp),
    runsStarted: Type.Integer({ minimum: 0 }),
    objectiveVersion: Type.Integer({ minimum: 1 }),
    objectives: Type.Array(
      Type.Object({ version: Type.Integer(), objective: Type.String(), at: Timestamp, by: NonEmpty }),
    ),
    escalation: Optional(GoalEscalation),
    note: Optional(Type.Object({ at: Timestamp, by: NonEmpty, text: Type.String() })),
    items: Type.Array(GoalEvaluation),
    nextCursor: Optional(Type.String()),
  },
  { $id: 'GoalEvaluations' },
);
/** A page of verdicts in `items`, with the current state of the work on the goal. */
export type GoalEvaluations = Static<typeof GoalEvaluations>;

/** How often people agreed with the verdicts of a judge. */
export const JudgeCalibration = Type.Object(
  {
    judge: NonEmpty,
    verdicts: Type.Integer({ minimum: 0 }),
    agreed: Type.Integer({ minimum: 0 }),
    disputed: Type.Integer({ minimum: 0 }),
    agreementRate: Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()], {
      description: 'Share of agreement among the verdicts that people reviewed; null if there are none',
    }),
  },
  { $id: 'JudgeCalibration' },
);
/** The counts for one judge; verdicts that nobody reviewed are neither agreed nor disputed. */
export type JudgeCalibration = Static<typeof JudgeCalibration>;

const Share = Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()], {
  description: 'Share of agreement among the verdicts that people reviewed; null if there are none',
});
const Count = Type.Integer({ minimum: 0 });

/** Periods by which agreement with a judge is counted, in UTC; weeks begin on Monday. */
export const AGREEMENT_PERIODS = ['day', 'week'] as const;
/** One of AGREEMENT_PERIODS. */
export type AgreementPeriod = (typeof AGREEMENT_PERIODS)[number];

/** How far people agree with a verifier: in all, by version, over time and by criterion. */
export const JudgeAgreement = Type.Object(
  {
    verifierId: NonEmpty,
    verdicts: Count,
    reviewed: Type.Integer({ minimum: 0, description: 'Verdicts that people agreed with or disputed' }),
    agreed: Count,
    disputed: Count,
    agreementRate: Share,
    versions: Type.Array(JudgeCalibration),
    periods: Type.Array(
      Type.Object({ from: Timestamp, to: Timestamp, agreed: Count, disputed: Count, agreementRate: Share }),
      { description: 'By the time of the review, latest first; periods without a review are left out' },
    ),
    criteria: Type.Array(
      Type.Object({ key: Type.String(), verdicts: Count, unmet: Count, disputedUnmet: Count, disputedMet: Count }),
      {
        description:
          'The criteria of the latest 500 verdicts, those that are unmet most often first; `disputedUnmet` and `disputedMet` count those in verdicts that people disputed',
      },
    ),
    recent: Type.Object({
      reviewed: Count,
      agreed: Count,
      secondJudge: Type.Boolean({ description: 'Whether the next verdict on a goal needs a second judge' }),
    }),
  },
  { $id: 'JudgeAgreement' },
);
/** The agreement with a verifier; reviews of all its versions count. */
export type JudgeAgreement = Static<typeof JudgeAgreement>;

/** A verdict that people reviewed: what the judge said, and what they say that it should have said. */
export const GoldCase = Type.Object(
  {
    runId: RunId,
    goalId: NonEmpty,
    judge: NonEmpty,
    at: Timestamp,
    said: Type.Boolean(),
    expected: Type.Boolean(),
    evidence: Type.Array(Evidence),
    reviewedAt: Timestamp,
    reviewedBy: Optional(NonEmpty),
  },
  { $id: 'GoldCase' },
);
/** A case of the gold set of a verifier. */
export type GoldCase = Static<typeof GoldCase>;

/** Dollars that judging a gold set again may cost at most. */
const GOLD_TRIAL_COST_MAX = 100;

/** Judges the gold set of a verifier again. */
export const GoldTrialRequest = Closed(
  {
    rubric: Optional(
      Type.String({ minLength: 1, maxLength: 16_000, description: 'A rubric to try; that of the verifier by default' }),
    ),
    maxCostUsd: Type.Number({
      minimum: 0,
      maximum: GOLD_TRIAL_COST_MAX,
      description: 'What the model may cost for all cases together',
    }),
    limit: Optional(Type.Integer({ minimum: 1, maximum: 50, description: 'How many of the latest cases (20)' })),
  },
  { $id: 'GoldTrialRequest' },
);
/** A valid trial; no verdict is stored, and no goal changes. */
export type GoldTrialRequest = Static<typeof GoldTrialRequest>;

/** How a verifier, or a rubric that it does not have yet, judges the cases of its gold set. */
export const GoldTrial = Type.Object(
  {
    verifierId: NonEmpty,
    cases: Type.Integer({ minimum: 0, description: 'Cases that were judged' }),
    agreedBefore: Type.Integer({
      minimum: 0,
      description: 'Cases in which the recorded verdict is what people expect',
    }),
    agreedNow: Type.Integer({ minimum: 0, description: 'Cases in which the new verdict is what people expect' }),
    costUsd: Cost,
    stoppedBy: Optional(Type.Literal('budget', { description: 'The next case would have cost more than is left' })),
    items: Type.Array(
      Type.Object({
        runId: RunId,
        expected: Type.Boolean(),
        said: Type.Boolean(),
        now: Optional(Type.Boolean({ description: 'Absent if the judge could not decide' })),
      }),
    ),
  },
  { $id: 'GoldTrial' },
);
/** The result of a trial. */
export type GoldTrial = Static<typeof GoldTrial>;
