import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { Closed, NonEmpty } from '../../../protocol/format/schema.ts';
import { RunParams } from '../../../protocol/running/runs.ts';
import type { Retention } from '../../operations/retention/door.ts';
import { type Caller, NO_CONTENT, route } from '../../request.ts';
import { type Authorization, credentialOf } from '../../trust/authorization/door.ts';

interface Services {
  readonly retention: Retention;
  readonly authorization: Authorization;
}
const operation = route<Services>();

const SCOPE = 'runs:cancel';
const PATH = '/v1/host/sample/test/force-expire/{runId}';

/** Ends and deletes a run before its retention is over. */
const forceExpire = operation({
  operationId: 'seamForceExpire',
  summary: 'Test seam: expire a run now',
  method: 'POST',
  path: PATH,
  scope: SCOPE,
  params: RunParams,
  replies: { 204: 'nothing' },
  refusals: [404, 410],
  handle: async ({ caller, params }, { retention }) => (await retention.expire(caller, params.runId)) ?? NO_CONTENT,
});

/** The same at an address that has the key in it: the public scenario is given an address and sends no header. */
const forceExpireByAddress = operation({
  operationId: 'seamForceExpireByAddress',
  summary: 'Test seam: expire a run now, with the key in the address',
  method: 'POST',
  path: `${PATH}/{token}`,
  scope: 'public',
  params: Closed({ ...RunParams.properties, token: NonEmpty }),
  replies: { 204: 'nothing' },
  refusals: [403, 404],
  handle: async ({ params: { runId, token } }, { retention, authorization }) => {
    const caller = await bearerOf(authorization, token);
    return isRefusal(caller) ? caller : ((await retention.expire(caller, runId)) ?? NO_CONTENT);
  },
});

async function bearerOf(authorization: Authorization, token: string): Promise<Caller | Refusal> {
  const caller = await authorization.authenticate(credentialOf(token));
  if (isRefusal(caller)) return NOT_FOUND;
  if (caller.scopes.has(SCOPE)) return caller;
  return refuse('forbidden', `This operation requires the scope ${SCOPE}.`, { scopeRequired: SCOPE });
}

/** The test seams that expire runs. */
export const expirySeams = [forceExpire, forceExpireByAddress];
