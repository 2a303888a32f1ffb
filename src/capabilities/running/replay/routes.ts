import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import { ForkReply, ForkRequest } from '../../../protocol/running/forks.ts';
import { RunParams } from '../../../protocol/running/runs.ts';
import { type Caller, type Reply, reply, route } from '../../request.ts';
import type { Forked, ReplayService } from './service.ts';

interface Services {
  readonly replay: ReplayService;
}
const operation = route<Services>();

export const forkRun = operation({
  operationId: 'forkRun',
  summary: 'Begin a run with the history of another: replay it, or branch off and go on otherwise',
  method: 'POST',
  path: '/v1/runs/{runId}:fork',
  scope: 'runs:create',
  params: RunParams,
  body: ForkRequest,
  replies: { 201: ForkReply },
  refusals: [400, 403, 404, 422],
  handle: async (request, { replay }) => {
    const { caller, params, body, origin } = request;
    const refusal = mayRead(caller) ?? checkMode(body);
    if (refusal) return refusal;
    const { mode, fromSeq = 0, runOptionsOverlay = {} } = body;
    const shown = ({ runId, status }: Forked): Reply =>
      reply(201, {
        runId,
        sourceRunId: params.runId,
        fromSeq,
        mode,
        status,
        eventsUrl: `${origin}/v1/runs/${runId}/events`,
      });
    const outcome = await replay.fork(caller, params.runId, { mode, fromSeq, overlay: runOptionsOverlay }, (forked) =>
      request.remember(shown(forked)),
    );
    return isRefusal(outcome) ? outcome : shown(outcome);
  },
});

/** A fork shows what its source holds. */
function mayRead({ scopes }: Caller): Refusal | undefined {
  if (scopes.has('runs:read')) return undefined;
  return refuse('forbidden', 'This takes the scope runs:read as well.', { scopeRequired: 'runs:read' });
}

function checkMode(body: { mode: string; fromSeq?: number; runOptionsOverlay?: object }): Refusal | undefined {
  if (body.mode === 'branch' && body.fromSeq === undefined) {
    return refuse('validation_error', 'A branch needs fromSeq: the event from which on it goes its own way.', {
      field: 'fromSeq',
    });
  }
  if (body.mode === 'replay' && Object.keys(body.runOptionsOverlay ?? {}).length > 0) {
    return refuse('validation_error', 'A replay has nothing otherwise than its source. Use a branch for that.', {
      field: 'runOptionsOverlay',
    });
  }
  return undefined;
}

export const routes = [forkRun];
