import { Type } from 'typebox';
import { isRefusal } from '../../protocol/errors.ts';
import { Closed, OneOf } from '../../protocol/format/schema.ts';
import { CommitmentFired, FIRE_CONDITIONS } from '../../protocol/starting/commitment-events.ts';
import { reply, route } from '../request.ts';
import type { Commitments } from '../starting/commitments/door.ts';

const CANARY = 'canary of an intention that no event may tell';

const ALWAYS = { observe: { runs: {} }, when: 'observed.count >= 0', everySec: 60 };

/** A commitment that is due at once, and what its run's log says of it. */
export const commitmentFire = route<{ readonly commitments: Commitments }>()({
  operationId: 'seamCommitmentFire',
  summary: 'Test seam: what is told of a commitment that is kept, and how often it is',
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
  refusals: [400],
  handle: async ({ caller, body: { memoryRef, condition, includeIntentionCanary } }, { commitments }) => {
    const kept = await commitments.tryOut(caller, {
      memoryRef,
      workflowId: 'conformance-noop',
      ...(includeIntentionCanary ? { intention: CANARY } : {}),
      ...(condition === 'predicate' ? { predicate: ALWAYS } : {}),
    });
    if (isRefusal(kept)) return kept;
    const { event, times: fireCount } = kept;
    return reply(200, {
      ...(event ? { event } : {}),
      fireCount,
      ...(includeIntentionCanary ? { intentionCanary: CANARY } : {}),
    });
  },
});
