import { Type } from 'typebox';
import { BUCKETS } from '../../../protocol/format/choices.ts';
import { Closed, OneOf, Timestamp } from '../../../protocol/format/schema.ts';
import { CostSummary } from '../../../protocol/operations/costs.ts';
import { answer, route } from '../../request.ts';
import type { CostService } from './service.ts';

const operation = route<{ readonly costs: CostService }>();

const summarizeCosts = operation({
  operationId: 'summarizeCosts',
  summary: 'What model calls used and cost, in total, over time, by workflow and by model',
  method: 'GET',
  path: '/v1/host/capstan/costs',
  scope: 'runs:read',
  query: Closed({
    workflowId: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
    since: Type.Optional(Timestamp),
    until: Type.Optional(Timestamp),
    bucket: Type.Optional(OneOf(BUCKETS, { description: 'In UTC; day by default' })),
  }),
  replies: { 200: CostSummary },
  refusals: [400],
  handle: async ({ caller: { subject }, query }, { costs }) => {
    const { workflowId, since, until, bucket = 'day' } = query;
    const outcome = await costs.summary({
      tenant: subject.tenant,
      workspace: subject.workspace,
      workflowId,
      since: since === undefined ? undefined : Date.parse(since),
      until: until === undefined ? undefined : Date.parse(until),
      bucket,
    });
    return answer(200, outcome);
  },
});

/** The operations about costs. */
export const routes = [summarizeCosts];
