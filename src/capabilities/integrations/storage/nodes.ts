import { Type } from 'typebox';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { KV_LIMITS, type KvRequest } from '../../../runtime/effects/kv.ts';
import { invalid, type NodeContext, type NodeType, type Outcome } from '../../../runtime/node-type.ts';

const Namespace = Type.Optional(Type.String({ minLength: 1, default: 'default' }));

type Asked = KvRequest | { readonly problem: string };

/** A node type for one storage operation: its config names the namespace, its inputs the key and value. */
function kvNode(
  { name, description }: { readonly name: string; readonly description: string },
  { inputs, needs, outputs }: { readonly [ports in 'inputs' | 'needs' | 'outputs']: readonly string[] },
  options: Parameters<typeof Type.Object>[0],
  ask: (context: Given) => Asked,
): NodeType {
  return {
    inputs,
    requiredInputs: needs,
    outputs: () => outputs,
    typeId: `core.storage.kv-${name}`,
    description,
    role: 'side-effect',
    config: Type.Object({ namespace: Namespace, ...options }),
    run: async ({ config, inputs, effects }: NodeContext): Promise<Outcome> => {
      const asked = ask({ config, inputs, namespace: (config.namespace as string | undefined) ?? 'default' });
      if ('problem' in asked) return invalid(asked.problem);
      return { done: { outputs: await effects.kv(asked) } };
    },
  };
}

interface Given {
  readonly config: JsonObject;
  readonly inputs: JsonObject;
  readonly namespace: string;
}

/** Checks the input `key` first. */
function keyed(ask: (context: Given & { readonly key: string }) => Asked): (context: Given) => Asked {
  return (context) => {
    const { key } = context.inputs;
    return typeof key === 'string' && key !== ''
      ? ask({ ...context, key })
      : { problem: 'The input `key` must be a text.' };
  };
}

const get = kvNode(
  { name: 'get', description: 'Reads a stored value.' },
  { inputs: ['key'], needs: ['key'], outputs: ['found', 'value', 'ttlRemainingMs'] },
  {},
  keyed(({ namespace, key }) => ({ op: 'get', namespace, key })),
);

const set = kvNode(
  { name: 'set', description: 'Stores a value for other runs.' },
  { inputs: ['key', 'value'], needs: ['key', 'value'], outputs: ['ok', 'replaced'] },
  { ttlSeconds: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: KV_LIMITS.ttlSeconds })) },
  keyed(({ config, inputs, namespace, key }) => {
    if (inputs.value === undefined) return { problem: 'The input `value` is missing.' };
    return { op: 'set', namespace, key, value: inputs.value, ttlSeconds: config.ttlSeconds as number | undefined };
  }),
);

const remove = kvNode(
  { name: 'delete', description: 'Deletes a stored value.' },
  { inputs: ['key'], needs: ['key'], outputs: ['deleted'] },
  {},
  keyed(({ namespace, key }) => ({ op: 'delete', namespace, key })),
);

const atomicIncrement = kvNode(
  { name: 'atomic-increment', description: 'Adds to a stored number.' },
  { inputs: ['key'], needs: ['key'], outputs: ['value', 'previous'] },
  { delta: Type.Optional(Type.Integer({ default: 1 })) },
  keyed(({ config, namespace, key }) => ({
    op: 'increment',
    namespace,
    key,
    delta: (config.delta as number | undefined) ?? 1,
  })),
);

/** Sets a value if the current one equals `expect`; null expects no value. */
const compareAndSwap = kvNode(
  { name: 'cas', description: 'Replaces a stored value if it is the expected one.' },
  { inputs: ['key', 'expect', 'set'], needs: ['key', 'set'], outputs: ['swapped', 'actual'] },
  {},
  keyed(({ inputs, namespace, key }) => {
    if (inputs.set === undefined) return { problem: 'The input `set` is missing.' };
    return { op: 'cas', namespace, key, expect: inputs.expect ?? null, set: inputs.set };
  }),
);

const list = kvNode(
  { name: 'list', description: 'Lists stored keys.' },
  { inputs: ['cursor'], needs: [], outputs: ['keys', 'nextCursor'] },
  {
    prefix: Type.Optional(Type.String({ default: '' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: KV_LIMITS.page, default: 50 })),
  },
  ({ config, inputs, namespace }) => ({
    op: 'list',
    namespace,
    prefix: (config.prefix as string | undefined) ?? '',
    limit: (config.limit as number | undefined) ?? 50,
    ...(typeof inputs.cursor === 'string' ? { cursor: inputs.cursor } : {}),
  }),
);

/** The node types of key-value storage. */
export const KV_NODES: readonly NodeType[] = [get, set, remove, list, atomicIncrement, compareAndSwap];
