import { APICallError, type LanguageModelV4, type LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { OutputLimitExceeded } from '../../engine/limits/output-budget.ts';
import type { ProviderUsage } from '../../protocol/ai/models.ts';
import { isObject } from '../../protocol/format/json.ts';
import type { ChunkMeta } from '../../protocol/running/events.ts';
import { type Clock, sleep } from '../../system/clock.ts';
import { type Egress, EgressFailure } from '../../system/egress.ts';
import { redactValue, secretRedactor } from '../../system/redaction.ts';
import { NodeFailure } from '../node-type.ts';
import { estimateTokens, inputEstimate } from './afford.ts';
import { Chunker } from './chunker.ts';
import { egressFetch } from './egress-fetch.ts';
import type { ModelProvider, ModelResult, Price, ProviderCall, ProviderQuestion, ToolCall } from './model.ts';
import { callOptions } from './sdk-question.ts';

/** A provider whose models are reached over the network. */
export interface NetworkProvider {
  readonly provider: string;
  readonly kind: 'openai-compatible' | 'anthropic' | 'google';
  readonly baseUrl?: string | undefined;
  /** The name of the secret, which may be shown; the secret may not. */
  readonly credentialRef?: string | undefined;
  readonly secret?: string | undefined;
  readonly models: readonly string[];
  readonly prices: Readonly<Record<string, Price>>;
  readonly timeoutMs: number;
}

/** Attempts at a call to a busy or unreachable provider before the node fails. */
const TRIES_MAX = 3;
const PAUSE_MS = 200;
const PAUSE_MAX_MS = 5_000;
const MESSAGE_CHARACTERS_MAX = 300;

type Redact = (text: string) => string;

/** A provider that is reached through its AI SDK package. */
export function sdkProvider(settings: NetworkProvider, egress: Egress, clock: Clock): ModelProvider {
  const { provider, models, prices, credentialRef = provider, secret = '' } = settings;
  const redact = secretRedactor([{ id: credentialRef, value: secret }]);
  const open = opener(settings, egressFetch(egress, settings.timeoutMs));
  return {
    id: provider,
    models,
    prices,
    answer: async (question, call) => {
      const model = await open(question.model);
      for (let tries = 1; ; tries++) {
        const answer = new Answer(provider, question, { clock, redact, call });
        try {
          return await answer.read(model);
        } catch (error) {
          const failure = failureOf(error, { provider, model: question.model, redact });
          const mayRetry = failure.error.retryable === true && !answer.hasBegun && !hasTimedOut(error);
          if (!mayRetry || tries === TRIES_MAX || call.signal.aborted) throw failure;
          await sleep(clock, pauseAfter(error, tries), call.signal);
        }
      }
    },
  };
}

/** Loads the package of a provider with its first question, because the packages are large. */
function opener({ kind, provider, baseUrl, secret }: NetworkProvider, send: typeof fetch) {
  const settings = {
    ...(baseUrl === undefined ? {} : { baseURL: baseUrl }),
    ...(secret === undefined ? {} : { apiKey: secret }),
    fetch: send,
  };
  return async (model: string): Promise<LanguageModelV4> => {
    if (kind === 'anthropic') return (await import('@ai-sdk/anthropic')).createAnthropic(settings)(model);
    if (kind === 'google') return (await import('@ai-sdk/google')).createGoogle(settings)(model);
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
    const compatible = { ...settings, name: provider, baseURL: baseUrl!, includeUsage: true };
    return createOpenAICompatible({ ...compatible, supportsStructuredOutputs: true }).chatModel(model);
  };
}

interface AnswerOptions {
  readonly clock: Clock;
  readonly redact: Redact;
  readonly call: ProviderCall;
}

type Finish = Extract<LanguageModelV4StreamPart, { type: 'finish' }>;

/** One answer while it streams. */
class Answer {
  readonly #provider: string;
  readonly #question: ProviderQuestion;
  readonly #options: AnswerOptions;
  readonly #chunker: Chunker;
  readonly #reasoning: Chunker;
  readonly #toolCalls: ToolCall[] = [];
  #text = '';
  #refusal = '';
  #finish: Finish | undefined;

  constructor(provider: string, question: ProviderQuestion, { clock, redact, call }: AnswerOptions) {
    this.#provider = provider;
    this.#question = question;
    this.#options = { clock, redact, call };
    const meta = { model: question.model, provider };
    this.#chunker = new Chunker({ clock, redact, onChunk: call.onChunk, meta });
    this.#reasoning = new Chunker({ clock, redact, onChunk: ({ text }) => call.onReasoning?.(text), meta: {} });
  }

  get hasBegun(): boolean {
    return this.#chunker.chunks.length > 0 || this.#reasoning.chunks.length > 0;
  }

  async read(model: LanguageModelV4): Promise<ModelResult> {
    const { signal, effectId, trace } = this.#options.call;
    try {
      const { stream } = await model.doStream({
        ...callOptions(this.#question),
        abortSignal: signal,
        headers: { ...trace, 'idempotency-key': effectId },
        includeRawChunks: true,
      });
      for await (const part of stream) this.#read(part);
      return this.#result();
    } finally {
      this.#chunker.stop();
      this.#reasoning.stop();
    }
  }

  #read(part: LanguageModelV4StreamPart): void {
    if (part.type === 'reasoning-delta') this.#reasoning.add(part.delta);
    else if (part.type === 'text-delta' || part.type === 'tool-call' || part.type === 'finish') this.#reasoning.flush();
    const { budget } = this.#options.call;
    if (part.type === 'text-delta') {
      budget?.take(part.delta.length);
      this.#text += part.delta;
      this.#chunker.add(part.delta);
    } else if (part.type === 'tool-call') {
      budget?.take(part.input.length);
      this.#toolCalls.push({ id: part.toolCallId, name: part.toolName, arguments: argumentsOf(part.input) });
    } else if (part.type === 'raw') this.#refusal += refusalIn(part.rawValue);
    else if (part.type === 'finish') this.#finish = part;
    else if (part.type === 'error') throw part.error;
  }

  #result(): ModelResult {
    const reason = this.#finish?.finishReason.unified ?? 'interrupted';
    if (reason === 'interrupted' || reason === 'error') throw new Error('the answer ended early');
    const { redact } = this.#options;
    const isRefused = this.#refusal !== '' || reason === 'content-filter';
    const usage = this.#usage();
    const toolCalls = redactValue(this.#toolCalls, redact);
    this.#chunker.finish({
      ...(isRefused ? { finishReason: 'content_filter' } : finishOf(reason)),
      ...(toolCalls.length > 0 ? { toolCalls } : {}),
      usage: {
        promptTokens: usage.inputTokens,
        completionTokens: usage.outputTokens,
        totalTokens: usage.inputTokens + usage.outputTokens,
      },
    });
    return {
      chunks: this.#chunker.chunks,
      ...(this.#reasoning.chunks.length > 0 ? { reasoning: this.#reasoning.chunks.map(({ text }) => text) } : {}),
      usage,
      ...(this.#finish?.finishReason.raw === 'max_tokens' ? { stopReason: 'max_tokens' } : {}),
      ...(isRefused ? { refusal: { text: redact(this.#refusal || this.#text) } } : {}),
    };
  }

  /** Token counts that the provider does not report are estimated from the text. */
  #usage(): ProviderUsage {
    const { inputTokens, outputTokens } = this.#finish!.usage;
    const input = inputTokens.total ?? inputEstimate(this.#question.messages);
    const output = outputTokens.total ?? estimateTokens(this.#text);
    return {
      provider: this.#provider,
      model: this.#question.model,
      inputTokens: input,
      outputTokens: output,
      totalTokens: input + output,
      ...(inputTokens.cacheRead ? { cacheHit: true, cacheReadTokens: inputTokens.cacheRead } : {}),
      ...(inputTokens.cacheWrite ? { cacheWriteTokens: inputTokens.cacheWrite } : {}),
    };
  }
}

function finishOf(reason: Finish['finishReason']['unified']): ChunkMeta {
  if (reason === 'tool-calls') return { finishReason: 'tool_calls' };
  return reason === 'stop' || reason === 'length' ? { finishReason: reason } : {};
}

/** Arguments that are not JSON are passed on as text; the tool's schema decides. */
function argumentsOf(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch {
    return input;
  }
}

/** OpenAI's protocol marks refusals in the raw chunk; the SDK shows them as ordinary text. */
function refusalIn(raw: unknown): string {
  const choices = isObject(raw) ? raw.choices : undefined;
  const [choice] = Array.isArray(choices) ? choices : [];
  const refusal = isObject(choice) && isObject(choice.delta) ? choice.delta.refusal : undefined;
  return typeof refusal === 'string' ? refusal : '';
}

interface Asked {
  readonly provider: string;
  readonly model: string;
  readonly redact: Redact;
}

/** Busy and unreachable providers are retryable; a rejected request is not. */
function failureOf(error: unknown, { provider, model, redact }: Asked): NodeFailure {
  if (error instanceof OutputLimitExceeded) return new NodeFailure(error.error);
  const status = APICallError.isInstance(error) ? error.statusCode : undefined;
  const said = redact((error as Error)?.message ?? '').slice(0, MESSAGE_CHARACTERS_MAX);
  const details = { provider, model, ...(status === undefined ? {} : { status }) };
  if (error instanceof EgressFailure && error.reason === 'refused') {
    return failure('provider_rejected', `The provider must not be contacted. ${said}`, false, details);
  }
  if (status === 429) return failure('provider_rate_limited', `The provider is busy: ${said}`, true, details);
  if (status !== undefined && status >= 400 && status < 500 && status !== 408) {
    return failure('provider_rejected', `The provider rejected the request: ${said}`, false, details);
  }
  return failure(
    'provider_unavailable',
    `The provider gave no answer: ${said || 'the stream ended early'}`,
    true,
    details,
  );
}

function failure(code: string, message: string, retryable: boolean, details: object): NodeFailure {
  return new NodeFailure({ code, message, retryable, details: { ...details } });
}

/** A call that timed out is left to the retry settings of the node. */
function hasTimedOut(error: unknown): boolean {
  return error instanceof EgressFailure && error.reason === 'timeout';
}

/** The provider's Retry-After up to a limit, else exponential backoff. */
function pauseAfter(error: unknown, tries: number): number {
  const header = APICallError.isInstance(error) ? error.responseHeaders?.['retry-after'] : undefined;
  const asked = header === undefined ? Number.NaN : Number(header) * 1_000;
  return Math.min(asked >= 0 ? asked : PAUSE_MS * 2 ** (tries - 1), PAUSE_MAX_MS);
}
