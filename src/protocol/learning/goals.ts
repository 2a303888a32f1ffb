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

export const GOAL_STATES = ['active', 'satisfied', 'escalated', 'abandoned', 'bound-exceeded'] as const;
export type GoalState = (typeof GOAL_STATES)[number];

export const JUDGES = ['verifier', 'host'] as const;
export const CONTINUATIONS = ['schedule', 'commitment', 'heartbeat', 'manual'] as const;
export type Continuation = (typeof CONTINUATIONS)[number];

export const OBJECTIVE_CHARS_MAX = 8_192;
const Ref = Type.Union([Type.String({ minLength: 1, maxLength: 256 }), Type.Null()]);
const Cost = Type.Number({ minimum: 0 });

/** What a goal may use up at most. */
export const GoalBounds = Closed({
  maxLoopIterations: Optional(Type.Integer({ minimum: 1, description: 'Contributing runs' })),
  runTimeoutMs: Optional(Type.Integer({ minimum: 0, description: 'Time since it was created' })),
  maxCostUsd: Optional(Type.Number({ minimum: 0, description: 'Cost of contributing runs and of judging them' })),
});
export type GoalBounds = Static<typeof GoalBounds>;

const completion = {
  check: OneOf(JUDGES, { description: 'Who judges' }),
  verifierRef: Optional(Ref),
};
const ContinuationBlock = Closed({
  mode: OneOf(CONTINUATIONS, { description: 'What brings about the next run' }),
  armRef: Optional(Ref),
});

/** A standing objective, as everybody sees it: closed at every level. */
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
export type Goal = Static<typeof Goal>;

/** What its author says of a goal. */
const written = {
  objective: Type.String({ minLength: 1, maxLength: OBJECTIVE_CHARS_MAX }),
  completion: Closed(completion),
  continuation: ContinuationBlock,
};

export const GoalRequest = Closed({ ...written, bounds: GoalBounds }, { $id: 'GoalRequest' });
export type GoalRequest = Static<typeof GoalRequest>;

export const GoalEdit = Closed(
  {
    objective: Optional(written.objective),
    completion: Optional(written.completion),
    continuation: Optional(written.continuation),
  },
  { $id: 'GoalEdit' },
);
export type GoalEdit = Static<typeof GoalEdit>;

export const GoalList = Type.Object(
  { goals: Type.Array(Goal), nextCursor: Optional(Type.String()) },
  { $id: 'GoalList' },
);

/** How a goal is worked on: what each contributing run runs, and what shows that it is reached. */
export const GoalPlan = Closed(
  {
    workflowId: Type.String({ minLength: 1, maxLength: 128, description: 'What each contributing run runs' }),
    inputs: Optional(MapOf(Type.Unknown(), { description: 'What each of them is given, besides `goal`' })),
    criteria: Type.Array(Criterion, {
      maxItems: CRITERIA_MAX,
      description: 'All must be met; the host judges by them',
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
        { description: 'A look now and then; the goal itself is looked at where nothing else is' },
      ),
    ),
    commitment: Optional(
      Closed(
        { intention, at, everySec, predicate, memoryRef: Optional(memoryRef) },
        { description: 'Kept at a time, or when something is so' },
      ),
    ),
    maxParallel: Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100,
        description: 'Contributing runs at once; 1 for those that an arm starts',
      }),
    ),
  },
  { $id: 'GoalPlan' },
);
export type GoalPlan = Static<typeof GoalPlan>;

export const ResumeGoalRequest = Closed(
  { note: Optional(Type.String({ maxLength: 2_000, description: 'Why it goes on' })) },
  { $id: 'ResumeGoalRequest' },
);

export const GoalRunRequest = Closed(
  { inputs: Optional(MapOf(Type.Unknown(), { description: 'Besides those of the plan' })) },
  { $id: 'GoalRunRequest' },
);

export const ESCALATIONS = ['low-confidence', 'undecided', 'no-progress'] as const;

/** Why work on a goal has stopped until a person says how it goes on. */
export const GoalEscalation = Type.Object({
  reason: OneOf(ESCALATIONS),
  at: Timestamp,
  runId: Optional(RunId),
  detail: Optional(Type.String()),
});

/** A verdict on a contributing run, as it was given. */
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
    undecided: Optional(Type.String({ description: 'Why the judge could not decide' })),
    disputedBy: Optional(NonEmpty),
  },
  { $id: 'GoalEvaluation' },
);
export type GoalEvaluation = Static<typeof GoalEvaluation>;

/** Everything that the goal itself has no room for. */
export const GoalEvaluations = Type.Object(
  {
    goalId: NonEmpty,
    managementRunId: RunId,
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
export type GoalEvaluations = Static<typeof GoalEvaluations>;

/** How often people agreed with a judge. */
export const JudgeCalibration = Type.Object(
  {
    judge: NonEmpty,
    verdicts: Type.Integer({ minimum: 0 }),
    agreed: Type.Integer({ minimum: 0 }),
    disputed: Type.Integer({ minimum: 0 }),
    agreementRate: Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()], {
      description: 'Of the verdicts on which somebody took a stand; null without any',
    }),
  },
  { $id: 'JudgeCalibration' },
);
export type JudgeCalibration = Static<typeof JudgeCalibration>;
