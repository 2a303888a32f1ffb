import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { RefusedError } from '../../src/client/index.ts';
import type { GoalState } from '../../src/protocol/learning/goals.ts';
import { client } from './client.ts';

const PAGE = 50;
const VERDICTS_MAX = 200;

/** The goals in a state, or all of them, newest first. */
export const goalsQuery = (state: GoalState | undefined) =>
  infiniteQueryOptions({
    queryKey: ['goals', state ?? 'all'],
    queryFn: ({ pageParam, signal }) =>
      client.listGoals(
        { limit: PAGE, ...(state ? { state } : {}), ...(pageParam ? { cursor: pageParam } : {}) },
        { signal },
      ),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
  });

/** A goal as it stands. */
export const goalQuery = (goalId: string) =>
  queryOptions({
    queryKey: ['goal', goalId],
    queryFn: ({ signal }) => client.getGoal(goalId, { signal }),
  });

/** How the work on a goal stands, with its latest verdicts. */
export const evaluationsQuery = (goalId: string) =>
  queryOptions({
    queryKey: ['goal', goalId, 'evaluations'],
    queryFn: ({ signal }) => client.listGoalEvaluations(goalId, { limit: VERDICTS_MAX }, { signal }),
  });

/** How the host works on a goal; null if it has no plan. */
export const planQuery = (goalId: string) =>
  queryOptions({
    queryKey: ['goal', goalId, 'plan'],
    queryFn: ({ signal }) => client.getGoalPlan(goalId, { signal }).catch(nullIfMissing),
  });

function nullIfMissing(error: unknown): null {
  if (error instanceof RefusedError && error.status === 404) return null;
  throw error;
}

/** The registered judges. */
export const verifiersQuery = queryOptions({
  queryKey: ['verifiers'],
  queryFn: async ({ signal }) => (await client.listVerifiers({ limit: 200 }, { signal })).items,
});
