import { queryOptions } from '@tanstack/react-query';
import { client } from './client.ts';

const LISTED_MAX = 200;

/** The workflows that can be started. */
export const workflowsQuery = queryOptions({
  queryKey: ['workflows'],
  queryFn: async ({ signal }) => (await client.listWorkflows({ limit: LISTED_MAX }, { signal })).items,
  staleTime: 60_000,
});

/** The definition of a workflow, as it is now. */
export const workflowQuery = (workflowId: string) =>
  queryOptions({
    queryKey: ['workflow', workflowId],
    queryFn: ({ signal }) => client.readWorkflow(workflowId, { signal }),
    staleTime: 60_000,
  });
