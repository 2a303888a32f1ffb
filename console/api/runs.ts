import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import type { RunOrigin } from '../../src/protocol/running/run-status.ts';
import type { RunSummary } from '../../src/protocol/running/runs.ts';
import type { ListedOrigin, RunsSearch } from '../runs/search.ts';
import { client } from './client.ts';

const PAGE = 50;

/** The runs that match the filters, newest first, a page at a time. */
export const runsQuery = ({ text: _text, start: _start, ...filters }: RunsSearch) =>
  infiniteQueryOptions({
    queryKey: ['runs', filters],
    queryFn: ({ pageParam, signal }) => readRuns(filters, pageParam, signal),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
  });

function readRuns({ text: _text, start: _start, origin, ...filters }: RunsSearch, cursor = '', signal?: AbortSignal) {
  const page = { limit: PAGE, ...(cursor && { cursor }) };
  return client.listRuns({ ...filters, ...originFilter(origin), ...page }, { signal });
}

/** The latest of the runs that match the filters, past the cache. */
export async function readLatestRuns(search: RunsSearch): Promise<readonly RunSummary[]> {
  return (await readRuns(search)).items;
}

/** Nobody started a preview, and there may be many of them, so they are listed only where somebody asks for them. */
function originFilter(origin: ListedOrigin | undefined): { origin?: RunOrigin; preview?: boolean } {
  if (origin === 'any') return {};
  if (origin === 'preview') return { preview: true };
  return { preview: false, ...(origin && { origin }) };
}

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
