import { isRefusal } from '../../../protocol/errors.ts';
import { SynthesizeReply, SynthesizeRequest } from '../../../protocol/learning/synthesis.ts';
import { reply, route } from '../../request.ts';
import type { SynthesisService } from './service.ts';

const synthesize = route<{ readonly synthesis: SynthesisService }>()({
  operationId: 'synthesizeProposals',
  summary: 'Scan runs and feedback for habits now, and draft proposals from them',
  method: 'POST',
  path: '/v1/host/capstan/proposals:synthesize',
  scope: 'proposals:write',
  body: SynthesizeRequest,
  bodyOptional: true,
  replies: { 200: SynthesizeReply },
  refusals: [400, 404],
  handle: async ({ caller, body, signal }, { synthesis }) => {
    const { kinds, sourceRunIds, since } = body ?? {};
    const outcome = await synthesis.synthesize(
      caller,
      { kinds, sourceRunIds, since: since === undefined ? undefined : Date.parse(since) },
      signal,
    );
    return isRefusal(outcome) ? outcome : reply(200, outcome);
  },
});

/** The operation that asks for a scan. */
export const routes = [synthesize];
