import { refuse } from '../../../protocol/errors.ts';
import { CreateRunReply } from '../../../protocol/running/runs.ts';
import { TrialRequest } from '../../../protocol/running/trials.ts';
import { type Route, route, transact } from '../../request.ts';
import { startedReply } from '../../started-reply.ts';
import type { TrialService } from './service.ts';

interface Services {
  readonly trials: TrialService;
}
const operation = route<Services>();

const MAY_NOT_RUN = refuse('forbidden', 'A trial is a run, which needs the scope runs:create.', {
  scopeRequired: 'runs:create',
});

const tryNode = operation({
  operationId: 'tryNode',
  summary: 'Run one node by itself with given inputs; the run is real, and no workflow is registered',
  method: 'POST',
  path: '/v1/host/capstan/trials',
  // Whoever writes workflows says what nodes do; whoever only starts them does not.
  scope: 'workflows:write',
  body: TrialRequest,
  replies: { 201: CreateRunReply },
  refusals: [400, 403, 422],
  handle: ({ caller, body, origin }, { trials }) => {
    if (!caller.scopes.has('runs:create')) return MAY_NOT_RUN;
    return transact(
      () => trials.start(caller, body),
      (started) => startedReply(origin, started),
    );
  },
});

/** The operations of trials. */
export const routes: readonly Route<Services>[] = [tryNode];
