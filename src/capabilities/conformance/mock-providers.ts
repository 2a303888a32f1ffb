import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { type Refusal, type RunError, refuse } from '../../protocol/errors.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import { AnyObject, OneOf } from '../../protocol/format/schema.ts';
import type { ChunkMeta } from '../../protocol/running/events.ts';
import type { Configurable } from '../../protocol/running/runs.ts';
import { afford } from '../../runtime/effects/afford.ts';
import type { ModelChunk, ModelResult } from '../../runtime/effects/model.ts';
import type { SeamDrivers } from '../../runtime/effects/seams.ts';
import { NodeFailure } from '../../runtime/node-type.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Clock, sleep } from '../../system/clock.ts';
import type { MockProviders } from '../running/runs/door.ts';

type MockProvider = NonNullable<Configurable['mockProvider']>;

/** Budgets count the tokens of mock providers, but no cost. */
const FREE = { input: 0, output: 0 };

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

/** The ids of the mock providers, as discovery lists them. */
export const MOCK_PROVIDERS: readonly string[] = Object.keys(PROVIDERS);

/** The mock providers as runs of test keys may name them. */
export const mockProviders: MockProviders = { ids: MOCK_PROVIDERS, check: checkMockProvider };

/** A model seam that answers runs with a mock provider itself and passes every other question on. */
export function mockableModel(
  model: SeamDrivers['model'],
  { reader, clock }: Pick<Runtime, 'reader' | 'clock'>,
): SeamDrivers['model'] {
  return async (request, firing) => {
    const { tenant, runId, allowance } = firing;
    const mock = await reader.view({ tenant }, runId, ({ run }) => run.facts.configurable.mockProvider);
    if (!mock) return model(request, firing);
    afford({ model: mock.id, messages: request.messages ?? [] }, allowance, FREE);
    return answerAsMock(clock, mock);
  };
}

/** The answer of a mock provider; fails the node as its config says. */
export async function answerAsMock(clock: Clock, { id, config = {} }: MockProvider): Promise<ModelResult> {
  const answer = PROVIDERS[id]?.(config);
  if (!answer) {
    const message = `There is no mock provider ${JSON.stringify(id)}.`;
    throw new NodeFailure({ code: 'capability_not_provided', message, retryable: false });
  }
  if (answer.failure) {
    await sleep(clock, answer.failure.afterMs);
    throw new NodeFailure(answer.failure.error);
  }
  return { chunks: answer.chunks, usage: usageIn(answer.chunks.at(-1)?.meta) };
}

function usageIn(meta: ChunkMeta | undefined): ModelResult['usage'] {
  if (!meta?.usage) return undefined;
  const { promptTokens: inputTokens, completionTokens: outputTokens, totalTokens } = meta.usage;
  return { provider: 'mock', model: meta.model ?? 'mock', inputTokens, outputTokens, totalTokens };
}

/** Refuses an unknown mock provider, or a config that does not match its schema, when the run is created. */
function checkMockProvider({ id, config = {} }: MockProvider): Refusal | undefined {
  if (!MOCK_PROVIDERS.includes(id)) {
    return refuse('unsupported_mock_provider', 'This host has no such mock provider.', {
      supportedProviders: MOCK_PROVIDERS,
    });
  }
  const problem = configProblem(id, config);
  if (problem === undefined) return undefined;
  const field = 'configurable.mockProvider.config';
  return refuse('validation_error', `${field}${problem}`, { field });
}

function configProblem(id: string, config: JsonObject): string | undefined {
  const schemas = { 'stream-text': StreamText, 'tool-calls': ToolCalls, error: Failing, 'usage-only': UsageOnly };
  const schema = schemas[id as keyof typeof schemas];
  const [problem] = schema ? Value.Errors(schema, config) : [];
  return problem && `${problem.instancePath || '/'} ${problem.message}`;
}
