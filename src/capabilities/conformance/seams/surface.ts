import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { NOT_FOUND } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { once } from '../../../protocol/format/once.ts';
import { AnyObject, Closed, NonEmpty } from '../../../protocol/format/schema.ts';
import type { Storage } from '../../integrations/storage/door.ts';
import type { Webhooks } from '../../operations/webhooks/door.ts';
import { type Answer, type Caller, reply, route, transact } from '../../request.ts';
import { kvSurface, unknownOperation } from './kv-surface.ts';

interface Services {
  readonly webhooks: Webhooks;
  readonly storage: Storage;
}

const LIST_MAX = 200;

/** Acts as made-up tenants within the caller's own, so that a suite with one key can test tenant isolation. */
export const testSurface = route<Services>()({
  operationId: 'seamTestSurface',
  summary: 'Test seam: webhooks and key-value storage of made-up tenants',
  method: 'POST',
  path: '/v1/host/sample/test/surface',
  scope: 'webhooks:manage',
  body: Type.Object({
    tenantId: Type.String({ pattern: '^[A-Za-z0-9._~-]{1,64}$' }),
    surface: NonEmpty,
    op: NonEmpty,
    args: Type.Optional(AnyObject),
  }),
  replies: { 200: AnyObject },
  refusals: [400, 404],
  handle: async ({ caller, body: { tenantId, surface, op, args = {} } }, { webhooks, storage }): Promise<Answer> => {
    const inside = callerIn(tenantId, caller);
    if (surface === 'kv') return kvSurface(storage, inside, op, args);
    // A suite takes 404 for a surface that is not exposed, whatever it wanted to do there.
    return surface === 'webhooks' ? webhookSurface(webhooks, inside, op, args) : NOT_FOUND;
  },
});

const isRegistration = once(() => Compile(Closed({ url: Type.String(), events: Type.Optional(Type.Array(NonEmpty)) })));

async function webhookSurface(webhooks: Webhooks, caller: Caller, op: string, args: JsonObject): Promise<Answer> {
  if (op === 'list') {
    const found = await webhooks.list(caller, undefined, LIST_MAX);
    return reply(200, { webhooks: found.map(({ webhookId }) => ({ webhookId })) });
  }
  if (op === 'unregister') {
    return transact(
      () => webhooks.unregister(caller, String(args.webhookId), undefined),
      () => reply(200, {}),
    );
  }
  if (op !== 'register' || !isRegistration().Check(args)) return unknownOperation(op);
  const { url, events = [] } = args;
  return transact(
    () => webhooks.register(caller, { url, events }),
    (issued) => reply(200, { webhookId: issued.webhookId }),
  );
}

/** Tenant names cannot contain `#`, so this is never a real tenant. */
function callerIn(tenantId: string, { subject, ...caller }: Caller): Caller {
  const { workspace: _bound, ...rest } = subject;
  return { ...caller, subject: { ...rest, tenant: `${subject.tenant}#surface-${tenantId}`, tenantName: tenantId } };
}
