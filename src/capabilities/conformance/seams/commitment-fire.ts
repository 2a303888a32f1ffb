import { Type } from 'typebox';
import { isRefusal } from '../../../protocol/errors.ts';
import { Closed, OneOf } from '../../../protocol/format/schema.ts';
import { CommitmentFired, FIRE_CONDITIONS } from '../../../protocol/starting/commitment-events.ts';
import { reply, route } from '../../request.ts';
import { type CommitmentTrials, tryCommitment } from './commitment-trial.ts';

const CANARY = 'canary of an intention that no event may tell';

const ALWAYS = { observe: { runs: {} }, when: 'observed.count >= 0', everySec: 60 };

/** Creates a commitment that is due at once and returns the event of its run. */
export const commitmentFire = route<CommitmentTrials>()({
  operationId: 'seamCommitmentFire',
  summary: 'Test seam: fire a commitment and return its event',
  method: 'POST',
  path: '/v1/host/sample/commitment/fire',
  scope: 'runs:create',
  body: Type.Object({
    memoryRef: Type.String({ minLength: 1, maxLength: 512 }),
    condition: OneOf(FIRE_CONDITIONS),
    includeIntentionCanary: Type.Optional(Type.Boolean()),
  }),
  replies: {
    200: Closed({
      event: Type.Optional(CommitmentFired),
      fireCount: Type.Integer(),
      intentionCanary: Type.Optional(Type.String()),
    }),
  },
  refusals: [400, 409],
  handle: async ({ caller, body: { memoryRef, condition, includeIntentionCanary } }, trials) => {
    const tried = await tryCommitment(trials, caller, {
      memoryRef,
      workflowId: 'conformance-noop',
      ...(includeIntentionCanary ? { intention: CANARY } : {}),
      ...(condition === 'predicate' ? { predicate: ALWAYS } : {}),
    });
    if (isRefusal(tried)) return tried;
    const { event, times: fireCount } = tried;
    return reply(200, {
      ...(event ? { event } : {}),
      fireCount,
      ...(includeIntentionCanary ? { intentionCanary: CANARY } : {}),
    });
  },
});
