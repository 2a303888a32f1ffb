import { Type } from 'typebox';
import { isRefusal, NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import { Closed, OneOf } from '../../../protocol/format/schema.ts';
import {
  GOAL_STATES,
  Goal,
  GoalEdit,
  GoalEvaluations,
  GoalList,
  GoalPlan,
  GoalRequest,
  GoalRunRequest,
  JudgeCalibration,
  ResumeGoalRequest,
} from '../../../protocol/learning/goals.ts';
import { CreateRunReply } from '../../../protocol/running/runs.ts';
import { ListQuery, numberIn, pageFrom, pageOf, pageRequest, readPageById } from '../../page.ts';
import { type About, answer, reply, route, transact } from '../../request.ts';
import { startedReply } from '../../started-reply.ts';
import { evaluationFrom } from './document.ts';
import type { Goals } from './door.ts';
import { refuseBounds, refuseNewBounds, refuseOwned } from './rules.ts';

interface Services {
  readonly goals: Goals;
}
const operation = route<Services>();

/** The final paths of goals, and those of the protocol's draft. */
const GOALS = '/v1/goals';
const DRAFT = '/v1/host/sample/goals';
const VENDOR = '/v1/host/capstan/goals';

/** The protocol defines no pages for this list, so the default page is as large as a page may be. */
const PAGE = '200';

const at = (rest: string) => ({ path: GOALS + rest, alsoAt: [DRAFT + rest] });

const GoalParams = Closed({ goalId: Type.String({ minLength: 1, maxLength: 128 }) });

/** Refuses requests about a goal that the caller cannot see before their body is validated. */
async function isAbsent(
  { caller, params }: About<{ goalId: string }>,
  { goals }: Services,
): Promise<Refusal | undefined> {
  const found = await goals.find(caller, params.goalId);
  return isRefusal(found) ? NOT_FOUND : undefined;
}

const listGoals = operation({
  operationId: 'listGoals',
  summary: 'Standing goals, newest first',
  method: 'GET',
  ...at(''),
  scope: 'goals:read',
  query: ListQuery({ state: Type.Optional(OneOf(GOAL_STATES)) }),
  replies: { 200: GoalList },
  refusals: [400],
  handle: async ({ caller, query }, { goals }) => {
    const page = pageRequest({ ...query, limit: query.limit ?? PAGE });
    if (isRefusal(page)) return page;
    const { items, nextCursor } = await readPageById(page, (before, limit) =>
      goals.list(caller, { state: query.state, before }, limit),
    );
    return reply(200, { goals: items, ...(nextCursor === undefined ? {} : { nextCursor }) });
  },
});

const createGoal = operation({
  operationId: 'createGoal',
  summary: 'Create a goal with its judge, its continuation and its bounds',
  method: 'POST',
  ...at(''),
  scope: 'goals:write',
  body: GoalRequest,
  first: (body) => refuseBounds(body) ?? refuseOwned(body),
  replies: { 200: Goal },
  refusals: [400, 409, 422],
  handle: ({ caller, body }, { goals }) =>
    transact(
      () => goals.create(caller, body),
      (goal) => reply(200, goal),
    ),
});

const getGoal = operation({
  operationId: 'getGoal',
  summary: 'A goal, with its progress and the last verdict',
  method: 'GET',
  ...at('/{goalId}'),
  scope: 'goals:read',
  params: GoalParams,
  replies: { 200: Goal },
  refusals: [404],
  handle: async ({ caller, params }, { goals }) => answer(200, await goals.find(caller, params.goalId)),
});

/** Both methods are served, so that neither can be used to claim that a goal is complete. */
const [editGoal, postGoal] = (['PATCH', 'POST'] as const).map((method) =>
  operation({
    operationId: method === 'PATCH' ? 'editGoal' : 'postGoal',
    summary: 'Change the objective, the judge or the continuation of an active goal',
    method,
    ...at('/{goalId}'),
    scope: 'goals:write',
    params: GoalParams,
    body: GoalEdit,
    before: isAbsent,
    first: (body) => refuseOwned(body) ?? refuseNewBounds(body),
    replies: { 200: Goal },
    refusals: [400, 404, 409, 422],
    handle: ({ caller, params, body }, { goals }) =>
      transact(
        () => goals.edit(caller, params.goalId, body),
        (goal) => reply(200, goal),
      ),
  }),
);

const pauseGoal = verb('pauseGoal', 'pause', 'Pause a goal: no more runs start until it is resumed');
const abandonGoal = verb('abandonGoal', 'abandon', 'Abandon a goal for good');

function verb(operationId: string, name: 'pause' | 'abandon', summary: string) {
  return operation({
    operationId,
    summary,
    method: 'POST',
    ...at(`/{goalId}/${name}`),
    scope: 'goals:write',
    params: GoalParams,
    replies: { 200: Goal },
    refusals: [404, 409],
    handle: ({ caller, params }, { goals }) =>
      transact(
        () => goals[name](caller, params.goalId),
        (goal) => reply(200, goal),
      ),
  });
}

const resumeGoal = operation({
  operationId: 'resumeGoal',
  summary: 'Resume a paused or escalated goal',
  method: 'POST',
  ...at('/{goalId}/resume'),
  scope: 'goals:write',
  params: GoalParams,
  body: ResumeGoalRequest,
  bodyOptional: true,
  before: isAbsent,
  replies: { 200: Goal },
  refusals: [400, 404, 409, 422],
  handle: ({ caller, params, body }, { goals }) =>
    transact(
      () => goals.resume(caller, params.goalId, body?.note),
      (goal) => reply(200, goal),
    ),
});

const getGoalPlan = operation({
  operationId: 'getGoalPlan',
  summary: 'The plan of a goal: its workflow and its criteria',
  method: 'GET',
  path: `${VENDOR}/{goalId}/plan`,
  scope: 'goals:read',
  params: GoalParams,
  replies: { 200: GoalPlan },
  refusals: [404],
  handle: async ({ caller, params }, { goals }) => answer(200, await goals.plan(caller, params.goalId)),
});

const putGoalPlan = operation({
  operationId: 'putGoalPlan',
  summary: 'Set the plan of a goal: its workflow and its criteria',
  method: 'PUT',
  path: `${VENDOR}/{goalId}/plan`,
  scope: 'goals:write',
  params: GoalParams,
  body: GoalPlan,
  before: isAbsent,
  replies: { 200: GoalPlan },
  refusals: [400, 404, 409],
  handle: ({ caller, params, body }, { goals }) =>
    transact(
      () => goals.setPlan(caller, params.goalId, body),
      (plan) => reply(200, plan),
    ),
});

const startGoalRun = operation({
  operationId: 'startGoalRun',
  summary: 'Start a contributing run now',
  method: 'POST',
  path: `${VENDOR}/{goalId}/runs`,
  scope: 'goals:write',
  params: GoalParams,
  body: GoalRunRequest,
  bodyOptional: true,
  before: isAbsent,
  replies: { 201: CreateRunReply },
  refusals: [400, 404, 409],
  handle: ({ caller, params, body, origin }, { goals }) =>
    transact(
      () => goals.start(caller, params.goalId, body?.inputs),
      (started) => startedReply(origin, started),
    ),
});

const listGoalEvaluations = operation({
  operationId: 'listGoalEvaluations',
  summary: 'Verdicts with their evidence, latest first, and facts that the goal document has no members for',
  method: 'GET',
  path: `${VENDOR}/{goalId}/evaluations`,
  scope: 'goals:read',
  params: GoalParams,
  query: ListQuery({}),
  replies: { 200: GoalEvaluations },
  refusals: [400, 404],
  handle: async ({ caller, params, query }, { goals }) => {
    const page = pageFrom(query, numberIn);
    if (isRefusal(page)) return page;
    const before = page.after ?? Number.MAX_SAFE_INTEGER;
    const found = await goals.evaluations(caller, params.goalId, before, page.limit + 1);
    if (isRefusal(found)) return found;
    return reply(200, {
      ...found.facts,
      ...pageOf(found.rows, page, evaluationFrom, ({ number }) => String(number)),
    });
  },
});

const listJudgeCalibration = operation({
  operationId: 'listJudgeCalibration',
  summary: 'How often people agree with each judge',
  method: 'GET',
  path: `${VENDOR}/calibration`,
  scope: 'goals:read',
  replies: { 200: Type.Object({ items: Type.Array(JudgeCalibration) }) },
  handle: async ({ caller }, { goals }) => reply(200, { items: await goals.calibration(caller) }),
});

/** The operations on goals. */
export const routes = [
  listGoals,
  createGoal,
  getGoal,
  editGoal!,
  postGoal!,
  pauseGoal,
  resumeGoal,
  abandonGoal,
  getGoalPlan,
  putGoalPlan,
  startGoalRun,
  listGoalEvaluations,
  listJudgeCalibration,
];
