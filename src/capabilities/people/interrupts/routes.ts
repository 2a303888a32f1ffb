import { Type } from 'typebox';
import { isRefusal } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { InterruptView, ResolveReply, ResolveRequest } from '../../../protocol/people/interrupts.ts';
import { RunId } from '../../../protocol/running/runs.ts';
import { reply, route, transact } from '../../request.ts';
import type { InterruptService } from './service.ts';

/** What the handlers of interrupt routes use. */
interface Services {
  readonly interrupts: InterruptService;
}
const operation = route<Services>();

const resolveInterruptByRun = operation({
  operationId: 'resolveInterruptByRun',
  summary: 'Answer the open interrupt of a node',
  method: 'POST',
  path: '/v1/runs/{runId}/interrupts/{nodeId}',
  scope: 'approvals:respond',
  params: Closed({ runId: RunId, nodeId: Type.String({ minLength: 1 }) }),
  body: ResolveRequest,
  replies: { 200: ResolveReply },
  refusals: [400, 404, 409, 410, 422],
  handle: ({ caller, params: { runId, nodeId }, body }, { interrupts }) =>
    transact(
      () => interrupts.resolve(caller, runId, nodeId, body.resumeValue),
      ({ status }) => reply(200, { runId, nodeId, status }),
    ),
});

const TokenParams = Closed({ token: Type.String({ minLength: 1 }) });

const inspectInterruptByToken = operation({
  operationId: 'inspectInterruptByToken',
  summary: 'Get the interrupt that a token names',
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

const resolveInterruptByToken = operation({
  operationId: 'resolveInterruptByToken',
  summary: 'Answer an interrupt with a token as the credential',
  method: 'POST',
  path: '/v1/interrupts/{token}',
  scope: 'public',
  params: TokenParams,
  body: ResolveRequest,
  replies: { 200: ResolveReply },
  refusals: [400, 403, 404, 409, 410, 422],
  // An unknown token is answered with 404 even if the body is invalid.
  before: ({ params }, { interrupts }) => interrupts.refusalOf(params.token),
  handle: ({ params, body }, { interrupts }) =>
    transact(
      () => interrupts.resolveByToken(params.token, body.resumeValue),
      ({ runId, nodeId, status }) => reply(200, { runId, nodeId, status }),
    ),
});

/** The routes of interrupts. */
export const routes = [resolveInterruptByRun, inspectInterruptByToken, resolveInterruptByToken];
