import { NOT_FOUND } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { KvRequest } from '../../../runtime/effects/kv.ts';
import type { Storage } from '../../integrations/storage/door.ts';
import { type Answer, type Caller, reply } from '../../request.ts';
import { orRefused } from './or-refused.ts';

/** The storage operations of the test surface. */
export const KV_OPERATIONS = ['get', 'set', 'delete', 'cas', 'atomicIncrement'] as const;

/** Performs a storage request as a node would. */
export async function kvSurface(
  storage: Storage,
  { subject: { tenant, workspace = '' } }: Caller,
  op: string,
  args: JsonObject,
): Promise<Answer> {
  const request = requestOf(op, args);
  if (!request) return NOT_FOUND;
  return orRefused(async () => reply(200, await storage.perform({ tenant, workspace }, request)));
}

function requestOf(op: string, args: JsonObject): KvRequest | undefined {
  const at = { namespace: String(args.namespace ?? 'default'), key: String(args.key ?? '') };
  switch (op) {
    case 'get':
    case 'delete':
      return { op, ...at };
    case 'set':
      return { op, ...at, value: args.value ?? null, ttlSeconds: args.ttlSeconds as number | undefined };
    case 'cas':
      return { op, ...at, expect: args.expect ?? null, set: args.set ?? null };
    case 'atomicIncrement':
      return { op: 'increment', ...at, delta: Number(args.delta ?? 1) };
    default:
      return undefined;
  }
}
