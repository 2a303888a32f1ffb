import { Type } from 'typebox';
import { isRefusal } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { InterruptView, ResolveReply, ResolveRequest } from '../../../protocol/people/interrupts.ts';
import { RunId } from '../../../protocol/running/runs.ts';
import { reply, route } from '../../request.ts';
import type { InterruptService, TokenResolution } from './service.ts';

interface Services {
  readonly interrupts: InterruptService;
}
const operation = route<Services>();

export const resolveInterruptByRun = operation({
  operationId: 'resolveInterruptByRun',
  summary: 'Answer what a node of a run waits for',
  method: 'POST',
  path: '/v1/runs/{runId}/interrupts/{nodeId}',
  scope: 'approvals:respond',
  params: Closed({ runId: RunId, nodeId: Type.String({ minLength: 1 }) }),
  body: ResolveRequest,
  replies: { 200: ResolveReply },
  refusals: [400, 404, 409, 410, 422],
  handle: async (request, { interrupts }) => {
    const { runId, nodeId } = request.params;
    const shown = ({ status }: { status: string }) => reply(200, { runId, nodeId, status });
    const outcome = await interrupts.resolve(request.caller, runId, nodeId, request.body.resumeValue, (done) =>
      request.remember(shown(done)),
    );
    return isRefusal(outcome) ? outcome : shown(outcome);
  },
});

const TokenParams = Closed({ token: Type.String({ minLength: 1 }) });

export const inspectInterruptByToken = operation({
  operationId: 'inspectInterruptByToken',
  summary: 'What a token stands for',
  method: 'GET',
  path: '/v1/interrupts/{token}',
  scope: 'public',
  params: TokenParams,
  replies: { 200: InterruptView },
  refusals: [404, 409, 410],
  handle: async ({ params }, { interrupts }) => {
    const outcome = await interrupts.inspect(params.token);
    return isRefusal(outcome) ? outcome : reply(200, outcome, { 'Cache-Control': 'no-store' });
  },
});

export const resolveInterruptByToken = operation({
  operationId: 'resolveInterruptByToken',
  summary: 'Answer with a token as the credential',
  method: 'POST',
  path: '/v1/interrupts/{token}',
  scope: 'public',
  params: TokenParams,
  body: ResolveRequest,
  replies: { 200: ResolveReply },
  refusals: [400, 403, 404, 409, 410, 422],
  // An unknown token is unknown whatever comes with it.
  before: ({ params }, { interrupts }) => interrupts.refusalOf(params.token),
  handle: async (request, { interrupts }) => {
    const shown = ({ runId, nodeId, status }: TokenResolution) => reply(200, { runId, nodeId, status });
    const outcome = await interrupts.resolveByToken(request.params.token, request.body.resumeValue, (done) =>
      request.remember(shown(done)),
    );
    return isRefusal(outcome) ? outcome : shown(outcome);
  },
});

export const routes = [resolveInterruptByRun, inspectInterruptByToken, resolveInterruptByToken];
