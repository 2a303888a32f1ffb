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

/** The definition that a run is pinned to, whatever its workflow has become since. */
export const runWorkflowQuery = (runId: string) =>
  queryOptions({
    queryKey: ['run-workflow', runId],
    queryFn: ({ signal }) => client.getRunWorkflow(runId, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** The versions of a workflow, newest first. */
export const versionsQuery = (workflowId: string) =>
  queryOptions({
    queryKey: ['workflow-versions', workflowId],
    queryFn: async ({ signal }) =>
      (await client.listWorkflowVersions(workflowId, { limit: LISTED_MAX }, { signal })).items,
  });

/** A version of a workflow, which never changes. */
export const versionQuery = (workflowId: string, version: number) =>
  queryOptions({
    queryKey: ['workflow-version', workflowId, version],
    queryFn: ({ signal }) => client.getWorkflowVersion(workflowId, String(version), { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** The node types of the host. */
export const nodeTypesQuery = queryOptions({
  queryKey: ['node-types'],
  queryFn: async ({ signal }) => (await client.listNodeTypes({ signal })).items,
  staleTime: Number.POSITIVE_INFINITY,
});

/** The latest runs of all workflows, for an impression of each. */
export const latestRunsQuery = queryOptions({
  queryKey: ['latest-runs'],
  queryFn: async ({ signal }) => (await client.listRuns({ limit: LISTED_MAX }, { signal })).items,
});
