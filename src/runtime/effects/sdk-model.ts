import { APICallError, type LanguageModelV4, type LanguageModelV4StreamPart } from '@ai-sdk/provider';
import type { ProviderUsage } from '../../protocol/ai/models.ts';
import { isObject } from '../../protocol/format/json.ts';
import type { ChunkMeta } from '../../protocol/running/events.ts';
import { type Clock, sleep } from '../../system/clock.ts';
import { type Egress, EgressFailure } from '../../system/egress.ts';
import { redactValue, secretRedactor } from '../../system/redaction.ts';
import { NodeFailure } from '../node-type.ts';
import { estimateTokens, inputEstimate } from './afford.ts';
import { egressFetch } from './egress-fetch.ts';
import type { ModelProvider, ModelResult, Price, ProviderCall, ProviderQuestion, ToolCall } from './model.ts';
import { Pieces } from './pieces.ts';
import { callOptions } from './sdk-question.ts';

/** A provider whose models are reached over the network. */
export interface NetworkProvider {
  readonly provider: string;
  readonly kind: 'openai-compatible' | 'anthropic' | 'google';
  readonly baseUrl?: string | undefined;
  /** What the secret is called; the only one of the two that may be shown. */
  readonly credentialRef?: string | undefined;
  readonly secret?: string | undefined;
  readonly models: readonly string[];
  readonly prices: Readonly<Record<string, Price>>;
  readonly timeoutMs: number;
}

/** Times that a provider is asked again at once when it was busy or not there, before the node is told. */
const TRIES_MAX = 3;
const PAUSE_MS = 200;
const PAUSE_MAX_MS = 5_000;
const MESSAGE_CHARACTERS_MAX = 300;

type Redact = (text: string) => string;

/** Asks through the provider packages of the AI SDK, which know how each provider speaks. */
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
          const isWorthIt = failure.error.retryable === true && !answer.hasBegun && !hasTimedOut(error);
          if (!isWorthIt || tries === TRIES_MAX || call.signal.aborted) throw failure;
          await sleep(clock, pauseAfter(error, tries), call.signal);
        }
      }
    },
  };
}

/** The packages are large, so each is loaded by the first question that needs it. */
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

/** One answer, while it comes. */
class Answer {
  readonly #provider: string;
  readonly #question: ProviderQuestion;
  readonly #options: AnswerOptions;
  readonly #pieces: Pieces;
  readonly #toolCalls: ToolCall[] = [];
  #text = '';
  #refusal = '';
  #finish: Finish | undefined;

  constructor(provider: string, question: ProviderQuestion, { clock, redact, call }: AnswerOptions) {
    this.#provider = provider;
    this.#question = question;
    this.#options = { clock, redact, call };
    const meta = { model: question.model, provider };
    this.#pieces = new Pieces({ clock, redact, onChunk: call.onChunk, meta });
  }

  get hasBegun(): boolean {
    return this.#pieces.chunks.length > 0;
  }

  async read(model: LanguageModelV4): Promise<ModelResult> {
    const { signal, effectId } = this.#options.call;
    try {
      const { stream } = await model.doStream({
        ...callOptions(this.#question),
        abortSignal: signal,
        headers: { 'idempotency-key': effectId },
        includeRawChunks: true,
      });
      for await (const part of stream) this.#onChunk(part);
      return this.#result();
    } finally {
      this.#pieces.stop();
    }
  }

  #onChunk(part: LanguageModelV4StreamPart): void {
    if (part.type === 'text-delta') {
      this.#text += part.delta;
      this.#pieces.add(part.delta);
    } else if (part.type === 'tool-call') {
      this.#toolCalls.push({ id: part.toolCallId, name: part.toolName, arguments: argumentsOf(part.input) });
    } else if (part.type === 'raw') this.#refusal += refusalIn(part.rawValue);
    else if (part.type === 'finish') this.#finish = part;
    else if (part.type === 'error') throw part.error;
  }

  #result(): ModelResult {
    const reason = this.#finish?.finishReason.unified ?? 'interrupted';
    if (reason === 'interrupted' || reason === 'error') throw new Error('the answer broke off');
    const { redact } = this.#options;
    const isRefused = this.#refusal !== '' || reason === 'content-filter';
    const usage = this.#usage();
    const toolCalls = redactValue(this.#toolCalls, redact);
    this.#pieces.finish({
      ...(isRefused ? { finishReason: 'content_filter' } : finishOf(reason)),
      ...(toolCalls.length > 0 ? { toolCalls } : {}),
      usage: {
        promptTokens: usage.inputTokens,
        completionTokens: usage.outputTokens,
        totalTokens: usage.inputTokens + usage.outputTokens,
      },
    });
    return {
      chunks: this.#pieces.chunks,
      usage,
      ...(this.#finish?.finishReason.raw === 'max_tokens' ? { stopReason: 'max_tokens' } : {}),
      ...(isRefused ? { refusal: { text: redact(this.#refusal || this.#text) } } : {}),
    };
  }

  /** A provider that does not say what it used is believed to have used what can be seen. */
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

/** What a model asks a tool for is data; whether it makes sense is for the tool to say. */
function argumentsOf(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch {
    return input;
  }
}

/** OpenAI's protocol has a place of its own for refusals, which the SDK shows as ordinary text. */
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

/** Busy and absent providers may be asked again; a provider that says no will say so again. */
function failureOf(error: unknown, { provider, model, redact }: Asked): NodeFailure {
  const status = APICallError.isInstance(error) ? error.statusCode : undefined;
  const said = redact((error as Error)?.message ?? '').slice(0, MESSAGE_CHARACTERS_MAX);
  const details = { provider, model, ...(status === undefined ? {} : { status }) };
  if (error instanceof EgressFailure && error.reason === 'refused') {
    return failure('provider_rejected', `The provider cannot be asked. ${said}`, false, details);
  }
  if (status === 429) return failure('provider_rate_limited', `The provider is busy: ${said}`, true, details);
  if (status !== undefined && status >= 400 && status < 500 && status !== 408) {
    return failure('provider_rejected', `The provider said no: ${said}`, false, details);
  }
  return failure('provider_unavailable', `The provider gave no answer: ${said || 'it broke off'}`, true, details);
}

function failure(code: string, message: string, retryable: boolean, details: object): NodeFailure {
  return new NodeFailure({ code, message, retryable, details: { ...details } });
}

/** Who has waited for so long does not wait again without a decision of its own. */
function hasTimedOut(error: unknown): boolean {
  return error instanceof EgressFailure && error.reason === 'timeout';
}

/** As long as the provider asks for, within reason. */
function pauseAfter(error: unknown, tries: number): number {
  const header = APICallError.isInstance(error) ? error.responseHeaders?.['retry-after'] : undefined;
  const asked = header === undefined ? Number.NaN : Number(header) * 1_000;
  return Math.min(asked >= 0 ? asked : PAUSE_MS * 2 ** (tries - 1), PAUSE_MAX_MS);
}
