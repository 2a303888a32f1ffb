import { parseTrace } from '../../../protocol/format/trace.ts';
import { ForkReply, ForkRequest } from '../../../protocol/running/forks.ts';
import { RunParams } from '../../../protocol/running/runs.ts';
import { reply, route, transact } from '../../request.ts';
import { checkMayRead, checkMode } from './rules.ts';
import type { ReplayService } from './service.ts';

const forkRun = route<{ readonly replay: ReplayService }>()({
  operationId: 'forkRun',
  summary: 'Start a run with the history of another: replay it, or branch off with changes',
  method: 'POST',
  path: '/v1/runs/{runId}:fork',
  scope: 'runs:create',
  params: RunParams,
  body: ForkRequest,
  replies: { 201: ForkReply },
  refusals: [400, 403, 404, 422],
  handle: ({ caller, params: { runId: sourceRunId }, body, origin, header }, { replay }) => {
    const refusal = checkMayRead(caller) ?? checkMode(body);
    if (refusal) return refusal;
    const trace = parseTrace(header('traceparent'), header('tracestate'));
    const { mode, fromSeq = 0, runOptionsOverlay: overlay = {} } = body;
    return transact(
      () => replay.fork(caller, sourceRunId, { mode, fromSeq, overlay, trace }),
      ({ runId, status }) => {
        const eventsUrl = `${origin}/v1/runs/${runId}/events`;
        return reply(201, { runId, sourceRunId, fromSeq, mode, status, eventsUrl });
      },
      { isAdditive: true },
    );
  },
});

/** The routes of replay. */
export const routes = [forkRun];
