import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { KvRequest } from '../../../runtime/effects/kv.ts';
import type { Storage } from '../../integrations/storage/door.ts';
import { type Answer, type Caller, reply } from '../../request.ts';
import { orRefused } from './or-refused.ts';

/** Refuses an operation that a surface does not have, or that is not called as it should be. */
export function unknownOperation(op: string): Refusal {
  return refuse('validation_error', `This surface has no operation ${JSON.stringify(op)} with such arguments.`, {
    field: 'op',
  });
}

/** Performs a storage request as a node would. */
export async function kvSurface(
  storage: Storage,
  { subject: { tenant, workspace = '' } }: Caller,
  op: string,
  args: JsonObject,
): Promise<Answer> {
  const request = requestOf(op, args);
  if (!request) return unknownOperation(op);
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
