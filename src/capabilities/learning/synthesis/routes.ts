import { isRefusal } from '../../../protocol/errors.ts';
import { SynthesizeReply, SynthesizeRequest } from '../../../protocol/learning/synthesis.ts';
import { type Route, reply, route } from '../../request.ts';
import type { SynthesisService } from './service.ts';

interface Needs {
  readonly synthesis: SynthesisService;
}

const synthesize = route<Needs>()({
  operationId: 'synthesizeProposals',
  summary: 'Look for what recurs in runs and feedback now, and draft what could be made of it',
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

export const routes: readonly Route<never>[] = [synthesize];
