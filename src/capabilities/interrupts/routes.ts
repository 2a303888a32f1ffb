import { Type } from 'typebox';
import { isRefusal, refuse } from '../../protocol/errors.ts';
import { InterruptView, ResolveReply, ResolveRequest } from '../../protocol/interrupts.ts';
import { isObject } from '../../protocol/json.ts';
import { RunId } from '../../protocol/runs.ts';
import { Closed } from '../../protocol/schema.ts';
import { reply, route } from '../capability.ts';
import type { InterruptService, TokenBody, TokenResolution } from './service.ts';

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
  // An unknown token is unknown whatever comes with it, so the body is looked at after the token.
  body: Type.Unknown({ description: '{ "resumeValue": … }' }),
  bodyOptional: true,
  replies: { 200: ResolveReply },
  refusals: [400, 403, 404, 409, 410, 422],
  handle: async (request, { interrupts }) => {
    const shown = ({ runId, nodeId, status }: TokenResolution) => reply(200, { runId, nodeId, status });
    const outcome = await interrupts.resolveByToken(request.params.token, tokenBody(request.body), (done) =>
      request.remember(shown(done)),
    );
    return isRefusal(outcome) ? outcome : shown(outcome);
  },
});

function tokenBody(body: unknown): TokenBody {
  if (isObject(body) && 'resumeValue' in body && Object.keys(body).length === 1) {
    return { isValid: true, value: body.resumeValue };
  }
  const refusal = refuse('validation_error', 'The body takes resumeValue, and nothing else.', { field: 'resumeValue' });
  return { isValid: false, refusal };
}

export const routes = [resolveInterruptByRun, inspectInterruptByToken, resolveInterruptByToken];
