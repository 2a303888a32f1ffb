import { queryOptions } from '@tanstack/react-query';
import type { Bucket } from '../../src/protocol/format/choices.ts';
import type { RunSummary } from '../../src/protocol/running/runs.ts';
import { client } from './client.ts';

const PAGE = 200;
/** Runs that are looked at; more would take the host and the reader too long. */
export const LOOKED_AT_MAX = 2_000;

interface Asked {
  readonly since: string;
  readonly workflowId: string | undefined;
}

/** What people said about runs, over time. */
export const feedbackSummaryQuery = ({ since, workflowId, bucket }: Asked & { readonly bucket: Bucket }) =>
  queryOptions({
    queryKey: ['feedback-summary', since, workflowId, bucket],
    queryFn: ({ signal }) => client.summarizeFeedback({ since, bucket, ...(workflowId && { workflowId }) }, { signal }),
  });

/** What model calls cost, over time, by workflow and by model. */
export const costsQuery = ({ since, workflowId, bucket }: Asked & { readonly bucket: Bucket }) =>
  queryOptions({
    queryKey: ['costs', since, workflowId, bucket],
    queryFn: ({ signal }) => client.summarizeCosts({ since, bucket, ...(workflowId && { workflowId }) }, { signal }),
  });

/** The runs of a span of time, the latest first, up to a limit. */
export const runsSinceQuery = ({ since, workflowId }: Asked) =>
  queryOptions({
    queryKey: ['runs-since', since, workflowId],
    queryFn: async ({ signal }) => {
      const found: RunSummary[] = [];
      let cursor: string | undefined;
      do {
        const query = { since, limit: PAGE, ...(workflowId && { workflowId }), ...(cursor && { cursor }) };
        const page = await client.listRuns(query, { signal });
        found.push(...page.items);
        cursor = page.nextCursor;
      } while (cursor !== undefined && found.length < LOOKED_AT_MAX);
      return { runs: found, isCut: cursor !== undefined };
    },
  });

/** How often people agreed with the judges of goals. */
export const calibrationQuery = queryOptions({
  queryKey: ['calibration'],
  queryFn: async ({ signal }) => (await client.listJudgeCalibration({ signal })).items,
});
