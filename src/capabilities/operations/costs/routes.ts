import { CostSummary } from '../../../protocol/operations/costs.ts';
import { answer, route } from '../../request.ts';
import { SummaryQuery, summaryRequest } from '../../summary-query.ts';
import type { CostService } from './service.ts';

const operation = route<{ readonly costs: CostService }>();

const summarizeCosts = operation({
  operationId: 'summarizeCosts',
  summary: 'What model calls used and cost, in total, over time, by workflow and by model',
  method: 'GET',
  path: '/v1/host/capstan/costs',
  scope: 'runs:read',
  query: SummaryQuery,
  replies: { 200: CostSummary },
  refusals: [400],
  handle: async ({ caller: { subject }, query }, { costs }) =>
    answer(200, await costs.summary(summaryRequest(subject, query))),
});

/** The operations about costs. */
export const routes = [summarizeCosts];
