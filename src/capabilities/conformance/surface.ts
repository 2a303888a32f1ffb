import { Type } from 'typebox';
import { NOT_FOUND } from '../../protocol/errors.ts';
import { AnyObject, NonEmpty, OneOf } from '../../protocol/format/schema.ts';
import type { Storage } from '../integrations/storage/door.ts';
import type { Webhooks } from '../operations/webhooks/door.ts';
import { type Answer, type Caller, reply, route, transact } from '../request.ts';
import { KV_OPERATIONS, kvSurface } from './kv-surface.ts';

interface Services {
  readonly webhooks: Webhooks;
  readonly storage: Storage;
}

const LIST_MAX = 200;

/** Speaks for made-up tenants inside the caller's own, so that one key can show that tenants do not see each other. */
export const testSurface = route<Services>()({
  operationId: 'seamTestSurface',
  summary: 'Test seam: webhooks and keys of two tenants with one key',
  method: 'POST',
  path: '/v1/host/sample/test/surface',
  scope: 'webhooks:manage',
  body: Type.Object({
    tenantId: Type.String({ pattern: '^[A-Za-z0-9._~-]{1,64}$' }),
    surface: NonEmpty,
    op: OneOf(['register', 'list', 'unregister', ...KV_OPERATIONS]),
    args: Type.Optional(
      Type.Object({
        url: Type.Optional(Type.String()),
        events: Type.Optional(Type.Array(NonEmpty)),
        webhookId: Type.Optional(Type.String()),
      }),
    ),
  }),
  replies: { 200: AnyObject },
  refusals: [400, 404],
  handle: async ({ caller, body: { tenantId, surface, op, args = {} } }, { webhooks, storage }): Promise<Answer> => {
    const inside = callerIn(tenantId, caller);
    if (surface === 'kv') return kvSurface(storage, inside, op, args);
    if (surface !== 'webhooks') return NOT_FOUND;
    if (op === 'list') {
      const found = await webhooks.list(inside, undefined, LIST_MAX);
      return reply(200, { webhooks: found.map(({ webhookId }) => ({ webhookId })) });
    }
    const { url = '', events = [], webhookId = '' } = args;
    if (op === 'unregister') {
      return transact(
        () => webhooks.unregister(inside, webhookId, undefined),
        () => reply(200, {}),
      );
    }
    return transact(
      () => webhooks.register(inside, { url, events }),
      (issued) => reply(200, { webhookId: issued.webhookId }),
    );
  },
});

/** `#` is in no tenant's name: no real tenant can be meant. */
function callerIn(tenantId: string, { subject, ...caller }: Caller): Caller {
  const { workspace: _bound, ...rest } = subject;
  return { ...caller, subject: { ...rest, tenant: `${subject.tenant}#surface-${tenantId}`, tenantName: tenantId } };
}
