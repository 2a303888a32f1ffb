import { Type } from 'typebox';
import { isRefusal, refuse } from '../../../protocol/errors.ts';
import { isObject } from '../../../protocol/format/json.ts';
import { Closed, OneOf } from '../../../protocol/format/schema.ts';
import { reply, route } from '../../request.ts';
import { DENIED_WORKFLOW, SPENDING_WORKFLOW } from '../fixtures/seam-workflows.ts';
import { payloadOf, type TrialRequest, type TrialServices, tryRun } from './trial-run.ts';

/** Runs whose budget is too small for what they do. */
const SCENARIOS: Readonly<Record<string, TrialRequest>> = {
  'hard-cost-exhaust': {
    workflowId: SPENDING_WORKFLOW,
    configurable: { budget: { maxCostUsd: 0.001, thresholdPercent: 80 } },
  },
  'model-denied': { workflowId: DENIED_WORKFLOW, configurable: { budget: { modelDeny: ['mock-mini'] } } },
};

/** Starts a real run with a budget and tells how it ended. */
export const budgetRun = route<TrialServices>()({
  operationId: 'seamBudgetRun',
  summary: 'Test seam: a run that exceeds its budget',
  method: 'POST',
  path: '/v1/host/sample/budget/run',
  scope: 'runs:create',
  body: Closed({ scenario: OneOf(['hard-cost-exhaust', 'model-denied', 'advisory']) }),
  replies: {
    200: Closed({
      runId: Type.String(),
      outcome: Type.String(),
      error: Type.Optional(Type.String()),
      modelCalled: Type.Boolean(),
    }),
  },
  refusals: [400, 501],
  handle: async ({ caller, body, signal }, services) => {
    const request = SCENARIOS[body.scenario];
    if (!request) return refuse('capability_not_provided', 'Budgets are enforced here; none is advisory.');
    const run = await tryRun(services, caller, request, signal);
    if (isRefusal(run)) return run;
    const { runId, status, events } = run;
    const failed = events.find(({ type }) => type === 'run.failed');
    const { error: cause } = failed ? payloadOf(failed) : {};
    const error = isObject(cause) ? String(cause.code) : undefined;
    const modelCalled = events.some(
      ({ type, nodeId }) => type === 'output.chunk' || (type === 'provider.usage' && nodeId === 'ask'),
    );
    return reply(200, { runId, outcome: status, ...(error === undefined ? {} : { error }), modelCalled });
  },
});
