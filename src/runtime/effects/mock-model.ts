import { Type } from 'typebox';
import { Value } from 'typebox/value';
import type { RunError } from '../../protocol/errors.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import { AnyObject, OneOf } from '../../protocol/format/schema.ts';
import type { ChunkMeta } from '../../protocol/running/events.ts';
import { type Clock, sleep } from '../../system/clock.ts';
import { NodeFailure } from '../node-type.ts';
import type { ModelChunk, ModelResult } from './model.ts';
import type { SeamDrivers } from './seams.ts';

const Delay = Type.Integer({ minimum: 0, maximum: 5_000, default: 0 });
const Usage = Type.Object({
  promptTokens: Type.Integer({ minimum: 0 }),
  completionTokens: Type.Integer({ minimum: 0 }),
  totalTokens: Type.Integer({ minimum: 0 }),
});
const Optional = Type.Optional;

const StreamText = Type.Object({
  tokens: Optional(Type.Array(Type.String(), { minItems: 1, maxItems: 10_000 })),
  delayMsPerToken: Optional(Delay),
  finishReason: Optional(OneOf(['stop', 'length', 'tool_calls', 'content_filter'])),
  usage: Optional(Usage),
  model: Optional(Type.String()),
});
const ToolCalls = Type.Object({
  toolCalls: Type.Array(Type.Object({ id: Type.String(), name: Type.String(), arguments: AnyObject }), {
    minItems: 1,
  }),
  delayMsPerToken: Optional(Delay),
});
const Failing = Type.Object({
  code: Optional(Type.String({ minLength: 1 })),
  message: Optional(Type.String({ minLength: 1 })),
  retryable: Optional(Type.Boolean()),
  failAfterMs: Optional(Type.Integer({ minimum: 0, maximum: 60_000 })),
});
const UsageOnly = Type.Object({ usage: Optional(Usage) });

const usageOf = (completionTokens: number): NonNullable<ChunkMeta['usage']> => ({
  promptTokens: 1,
  completionTokens,
  totalTokens: completionTokens + 1,
});

interface MockAnswer {
  readonly chunks: readonly ModelChunk[];
  readonly failure?: { readonly afterMs: number; readonly error: RunError };
}

/** Providers that answer the same way every time, for test keys only. */
const PROVIDERS: Record<string, (config: JsonObject) => MockAnswer> = {
  'stream-text': (config) => {
    const given = Value.Parse(StreamText, config);
    const tokens = given.tokens ?? ['mock', ' response'];
    const model = given.model ?? 'mock-stream-text-v1';
    const last: ChunkMeta = {
      model,
      finishReason: given.finishReason ?? 'stop',
      usage: given.usage ?? usageOf(tokens.length),
    };
    const chunks = tokens.map((text, index) => ({
      text,
      delayMs: given.delayMsPerToken ?? 0,
      meta: index === tokens.length - 1 ? last : { model },
    }));
    return { chunks };
  },
  'tool-calls': (config) => {
    const { toolCalls, delayMsPerToken = 0 } = Value.Parse(ToolCalls, config);
    const meta: ChunkMeta = { model: 'mock-tool-calls-v1', finishReason: 'tool_calls', toolCalls, usage: usageOf(1) };
    return { chunks: [{ text: '', delayMs: delayMsPerToken, meta }] };
  },
  error: (config) => {
    const given = Value.Parse(Failing, config);
    const { code = 'mock_provider_error', message = 'The mock provider failed.', retryable = false } = given;
    return { chunks: [], failure: { afterMs: given.failAfterMs ?? 0, error: { code, message, retryable } } };
  },
  'usage-only': (config) => {
    const { usage = usageOf(0) } = Value.Parse(UsageOnly, config);
    const meta: ChunkMeta = { model: 'mock-usage-only-v1', finishReason: 'stop', usage };
    return { chunks: [{ text: '', delayMs: 0, meta }] };
  },
};

export const MOCK_PROVIDERS: readonly string[] = Object.keys(PROVIDERS);

export function mockModel(clock: Clock): SeamDrivers['model'] {
  return async ({ mockProvider }) => {
    const answer = PROVIDERS[mockProvider?.id ?? '']?.(mockProvider!.config);
    if (!answer) {
      const message = `There is no mock provider ${JSON.stringify(mockProvider?.id)}.`;
      throw new NodeFailure({ code: 'capability_not_provided', message, retryable: false });
    }
    if (answer.failure) {
      await sleep(clock, answer.failure.afterMs);
      throw new NodeFailure(answer.failure.error);
    }
    return { chunks: answer.chunks, usage: usageIn(answer.chunks.at(-1)?.meta) };
  };
}

function usageIn(meta: ChunkMeta | undefined): ModelResult['usage'] {
  if (!meta?.usage) return undefined;
  const { promptTokens: inputTokens, completionTokens: outputTokens, totalTokens } = meta.usage;
  return { provider: 'mock', model: meta.model ?? 'mock', inputTokens, outputTokens, totalTokens };
}

/** What is wrong with a mock provider's config, said when the run is created. */
export function checkMockProvider(id: string, config: JsonObject): string | undefined {
  const schemas = { 'stream-text': StreamText, 'tool-calls': ToolCalls, error: Failing, 'usage-only': UsageOnly };
  const schema = schemas[id as keyof typeof schemas];
  const [problem] = schema ? Value.Errors(schema, config) : [];
  return problem && `${problem.instancePath || '/'} ${problem.message}`;
}
