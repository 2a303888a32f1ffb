import { Type } from 'typebox';
import { OneOf } from '../../../protocol/format/schema.ts';
import type { NodeType } from '../../../runtime/node-type.ts';
import { sha256Hex } from '../../../system/digest.ts';

const KEY_DIGITS = 16;

/** Makes an idempotency key for a request: of this node in this run (composite), or of this payload in any run (hash). */
export const idempotencyKey: NodeType = {
  typeId: 'core.openwop.http.idempotency-key',
  description: 'Computes an idempotency key for a request.',
  inputs: ['payload', 'runId', 'nodeId'],
  outputs: () => ['key'],
  role: 'pure',
  config: Type.Object({ mode: Type.Optional(OneOf(['composite', 'hash', 'uuid'])) }),
  run: ({ config, inputs, runId, node }) => {
    const { payload } = inputs;
    if (config.mode === 'uuid') {
      const message = 'The mode uuid was removed: a retry would not repeat the key. Use composite or hash.';
      return { failed: { code: 'CONFIG_INVALID', message, retryable: false } };
    }
    const text =
      config.mode === 'hash'
        ? JSON.stringify(payload ?? null)
        : [inputs.runId ?? runId, inputs.nodeId ?? node.id, payload == null ? '' : JSON.stringify(payload)].join('\0');
    return { done: { outputs: { key: `openwop-${sha256Hex(text).slice(0, KEY_DIGITS)}` } } };
  },
};
