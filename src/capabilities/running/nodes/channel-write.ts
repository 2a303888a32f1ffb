import { Type } from 'typebox';
import { REDUCER_NAMES } from '../../../engine/run/channels.ts';
import { NonEmpty, OneOf } from '../../../protocol/format/schema.ts';
import type { NodeType } from '../../../runtime/node-type.ts';

const YEAR_MS = 31_536_000_000;

/** Writes a value to a channel of the run; an input port `value` wins over the config. */
export const channelWrite: NodeType = {
  typeId: 'core.channelWrite',
  description: 'Writes to a channel.',
  inputs: ['value'],
  writes: ({ config }) => [String(config.channelName)],
  outputs: () => [],
  role: 'pure',
  config: Type.Object({
    channelName: NonEmpty,
    reducer: OneOf(REDUCER_NAMES, { description: "A declared channel's own reducer wins" }),
    value: Type.Optional(Type.Unknown()),
    ttlMs: Type.Optional(Type.Integer({ minimum: 0, maximum: YEAR_MS })),
    maxSize: Type.Optional(Type.Integer({ minimum: 1 })),
  }),
  run: ({ config, declared }) => {
    const value = Object.hasOwn(declared, 'value') ? declared.value : (config.value ?? null);
    const write = {
      channel: config.channelName as string,
      reducer: config.reducer as string,
      value,
      ttlMs: config.ttlMs as number | undefined,
    };
    return { done: { channels: [write] } };
  },
};
