import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import type { RunsSearch } from '../runs/search.ts';
import { client } from './client.ts';

const PAGE = 50;

/** The runs that match the filters, newest first, a page at a time. */
export const runsQuery = ({ text: _text, start: _start, ...filters }: RunsSearch) =>
  infiniteQueryOptions({
    queryKey: ['runs', filters],
    queryFn: ({ pageParam, signal }) =>
      client.listRuns({ ...filters, limit: PAGE, ...(pageParam ? { cursor: pageParam } : {}) }, { signal }),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
  });

/** A run as it stands. */
export const runQuery = (runId: string) =>
  queryOptions({
    queryKey: ['run', runId],
    queryFn: ({ signal }) => client.getRun(runId, { signal }),
  });

/** What people said about a run. */
export const annotationsQuery = (runId: string) =>
  queryOptions({
    queryKey: ['annotations', runId],
    queryFn: async ({ signal }) => (await client.listAnnotations(runId, { signal })).annotations,
  });

/** What differs between two runs. */
export const diffQuery = (runId: string, against: string) =>
  queryOptions({
    queryKey: ['diff', runId, against],
    queryFn: ({ signal }) => client.diffRun(runId, { against }, { signal }),
  });
