import { NOT_FOUND, refuse } from '../../../protocol/errors.ts';
import { parseTrace } from '../../../protocol/format/trace.ts';
import { CALL_DEFAULT_S, CallPending, CallRequest, CallResult } from '../../../protocol/running/calls.ts';
import { isTerminalStatus } from '../../../protocol/running/runs.ts';
import { type Route, reply, route, transact } from '../../request.ts';
import type { CallService } from './service.ts';

interface Services {
  readonly calls: CallService;
}
const operation = route<Services>();

const MAY_NOT_READ = refuse(
  'forbidden',
  'A call answers with the result of its run, which needs the scope runs:read.',
  {
    scopeRequired: 'runs:read',
  },
);

const callWorkflow = operation({
  operationId: 'callWorkflow',
  summary: 'Run a workflow and get its result; if the run takes longer or waits for a person, get the run',
  method: 'POST',
  path: '/v1/host/capstan/calls',
  scope: 'runs:create',
  body: CallRequest,
  replies: { 200: CallResult, 202: CallPending },
  refusals: [400, 403, 404, 422],
  handle: ({ caller, body, origin, header }, { calls }) => {
    if (!caller.scopes.has('runs:read')) return MAY_NOT_READ;
    return transact(
      () => calls.start(caller, body, parseTrace(header('traceparent'), header('tracestate'))),
      ({ runId, status }) =>
        reply(202, { runId, status, statusUrl: `${origin}/v1/runs/${runId}` } satisfies CallPending),
    );
  },
  followUp: async (request, accepted, { calls }) => {
    const { runId, statusUrl } = accepted as CallPending;
    const { waitSeconds = CALL_DEFAULT_S } = request.body;
    const called = await calls.result(request.caller, runId, waitSeconds * 1_000, request);
    if (!called) return NOT_FOUND;
    const { status } = called;
    if (!isTerminalStatus(status)) return reply(202, { runId, status, statusUrl } satisfies CallPending);
    return reply(200, { runId, statusUrl, ...called } satisfies CallResult);
  },
});

/** The operations of calls. */
export const routes: readonly Route<Services>[] = [callWorkflow];
