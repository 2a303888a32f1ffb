import { Type } from 'typebox';
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import { Closed, NonEmpty } from '../../../protocol/format/schema.ts';
import { RunParams } from '../../../protocol/running/runs.ts';
import type { Retention } from '../../operations/retention/door.ts';
import { type Caller, NO_CONTENT, route } from '../../request.ts';
import { type Authorization, credentialOf, UNAUTHENTICATED } from '../../trust/authorization/door.ts';

const SCOPE = 'runs:cancel';

/**
 * Ends and deletes a run before its retention is over. The public scenario calls an address that the operator gives it
 * and sends no header, so the key may be in the address.
 */
export const forceExpire = route<{ readonly retention: Retention; readonly authorization: Authorization }>()({
  operationId: 'seamForceExpire',
  summary: 'Test seam: expire a run now',
  method: 'POST',
  path: '/v1/host/sample/test/force-expire/{runId}',
  scope: 'public',
  params: RunParams,
  query: Closed({ key: Type.Optional(NonEmpty) }),
  replies: { 204: 'nothing' },
  refusals: [401, 403, 404, 410],
  handle: async ({ params, query, header }, { retention, authorization }) => {
    const [, sent] = /^Bearer +(.+)$/i.exec(header('authorization') ?? '') ?? [];
    const caller = await callerWith(authorization, sent ?? query.key);
    if (isRefusal(caller)) return caller;
    return (await retention.expire(caller, params.runId)) ?? NO_CONTENT;
  },
});

async function callerWith(authorization: Authorization, key: string | undefined): Promise<Caller | Refusal> {
  if (key === undefined) return UNAUTHENTICATED;
  const caller = await authorization.authenticate(credentialOf(key));
  if (isRefusal(caller) || caller.scopes.has(SCOPE)) return caller;
  return refuse('forbidden', `This operation requires the scope ${SCOPE}.`, { scopeRequired: SCOPE });
}
