import { type Static, Type } from 'typebox';
import { BUCKETS } from '../protocol/format/choices.ts';
import { Closed, OneOf, Timestamp } from '../protocol/format/schema.ts';
import type { Visibility } from '../store/log.ts';
import type { Period } from './periods.ts';

/** The query of an operation that sums something up over time. */
export const SummaryQuery = Closed({
  workflowId: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  since: Type.Optional(Timestamp),
  until: Type.Optional(Timestamp),
  bucket: Type.Optional(OneOf(BUCKETS, { description: 'In UTC; day by default' })),
});

/** What is summed up: runs that somebody sees, of one workflow or of all, in a period. */
export interface SummaryRequest extends Visibility, Period {
  readonly workflowId?: string | undefined;
}

/** What a caller asks for with a SummaryQuery. */
export function summaryRequest(
  { tenant, workspace }: Visibility,
  { workflowId, since, until, bucket = 'day' }: Static<typeof SummaryQuery>,
): SummaryRequest {
  const timeOf = (text: string | undefined): number | undefined => (text === undefined ? undefined : Date.parse(text));
  return { tenant, workspace, workflowId, since: timeOf(since), until: timeOf(until), bucket };
}
