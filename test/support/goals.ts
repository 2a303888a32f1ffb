import { expect } from 'vitest';
import type { Answer, Api } from './api.ts';
import { expression, node, register, workflow } from './definitions.ts';
import { until } from './until.ts';

type Body = Answer['body'];

export const GOALS = '/v1/goals';
export const PLANS = '/v1/host/capstan/goals';

/** A workflow that tells which run of its goal it is. */
export const counting = workflow([
  node('work', 'core.identity', {
    inputs: { iteration: expression('inputs.goal.iteration'), told: expression('inputs.goal') },
  }),
]);

export const never = { key: 'never', expression: 'false' };
export const onThird = { key: 'third', expression: 'outputs.work.iteration >= 3' };

/** Sets a goal that is worked on by hand and judged by the host, unless it says otherwise. */
export async function setGoal(api: Api, body: object = {}): Promise<Body> {
  const answer = await api.post(GOALS, {
    objective: 'Finish the checklist',
    completion: { check: 'host' },
    continuation: { mode: 'manual' },
    bounds: { maxLoopIterations: 3 },
    ...body,
  });
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
}

export async function plan(api: Api, goalId: string, body: object = {}): Promise<Body> {
  const answer = await api.request('PUT', `${PLANS}/${goalId}/plan`, {
    workflowId: counting.id,
    criteria: [never],
    ...body,
  });
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
}

export const start = (api: Api, goalId: string, body?: object): Promise<Answer> =>
  api.post(`${PLANS}/${goalId}/runs`, body);

/** Starts a run of the goal and gives its id. */
export async function run(api: Api, goalId: string): Promise<string> {
  const answer = await start(api, goalId);
  expect(answer.status, answer.text).toBe(201);
  return answer.body.runId;
}

export const read = async (api: Api, goalId: string): Promise<Body> => (await api.get(`${GOALS}/${goalId}`)).body;

export const evaluations = async (api: Api, goalId: string): Promise<Body> =>
  (await api.get(`${PLANS}/${goalId}/evaluations?limit=200`)).body;

/** The goal, once it has been judged so often. */
export const judged = (api: Api, goalId: string, times: number): Promise<Body> =>
  until(
    () => read(api, goalId),
    ({ progress }) => progress.iterations >= times,
  );

/** The goal, once it is in that state. */
export const reaches = (api: Api, goalId: string, state: string): Promise<Body> =>
  until(
    () => read(api, goalId),
    (goal) => goal.state === state,
  );

/** What the log tells of the goal, as `goal.evaluated` and `goal.closed`. */
export async function told(api: Api, goalId: string): Promise<Body[]> {
  const { managementRunId } = await evaluations(api, goalId);
  return (await api.events(managementRunId)).filter(({ type }) => type.startsWith('goal.'));
}

/** A goal with a plan, and its id. */
export async function planned(api: Api, body: object = {}, how: object = {}): Promise<string> {
  const { id } = await setGoal(api, body);
  await plan(api, id, how);
  return id;
}

export const registerCounting = (api: Api): Promise<string> => register(api, counting);
