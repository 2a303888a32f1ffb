import type { OutputBudget } from '../../engine/limits/output-budget.ts';
import type { ProviderUsage } from '../../protocol/ai/models.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import type { TraceHeaders } from '../../protocol/format/trace.ts';
import type { ChunkMeta } from '../../protocol/running/events.ts';

/** What a node asks of a model. Without a provider or model the host uses the first that is configured. */
export interface ModelRequest extends Question {
  readonly provider?: string | undefined;
  readonly model?: string | undefined;
  /** Called with each chunk as it arrives; not called for an answer that is a recorded effect. */
  readonly onChunk?: (chunk: ModelChunk, isLast: boolean) => void;
  /** Called with each piece of the model's reasoning as it arrives, before the answer; not for a recorded effect. */
  readonly onReasoning?: (text: string) => void;
}

interface Question {
  readonly messages?: readonly ModelMessage[];
  readonly maxTokens?: number | undefined;
  readonly temperature?: number | undefined;
  readonly stopSequences?: readonly string[] | undefined;
  /** The answer must be JSON that matches this schema. */
  readonly outputSchema?: JsonObject | undefined;
  readonly tools?: readonly ModelTool[] | undefined;
  readonly toolChoice?: ToolChoice | undefined;
}

/** One message of the conversation with a model. */
export type ModelMessage =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content: string; readonly toolCalls?: readonly ToolCall[] }
  | { readonly role: 'tool'; readonly toolCallId: string; readonly name: string; readonly content: string };

/** A tool whose call the model may request. The caller of the model decides whether to call it. */
export interface ModelTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: JsonObject;
}

/** Whether the model may, must or must not request tool calls. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string };

/** A tool call that a model requests. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: unknown;
}

/** An answer in the chunks in which it arrived. The meta of the last chunk says how it ended. */
export interface ModelResult {
  readonly chunks: readonly ModelChunk[];
  /** What the model thought before it answered, in the pieces in which it arrived. */
  readonly reasoning?: readonly string[];
  readonly usage?: ProviderUsage | undefined;
  /** The model refused to answer; its words. */
  readonly refusal?: { readonly text: string } | undefined;
  /** The digest of the question, by the recipe for caches of answers. */
  readonly requestKey?: string;
  /** Why an answer was cut off, in the provider's term. */
  readonly stopReason?: 'max_tokens' | 'length' | undefined;
  /** The log has the events of this answer already: it was recorded before a crash. */
  readonly isRecorded?: boolean;
}

/** A part of an answer. */
export interface ModelChunk {
  readonly text: string;
  readonly delayMs: number;
  readonly meta: ChunkMeta;
}

/** Dollars per million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
}

/** A source of models, whether over the network or in this process. */
export interface ModelProvider {
  readonly id: string;
  /** The first is the default. */
  readonly models: readonly string[];
  readonly prices: Readonly<Record<string, Price>>;
  /** Never chosen as the default provider. */
  readonly isByNameOnly?: boolean;
  answer(question: ProviderQuestion, call: ProviderCall): Promise<ModelResult>;
  /** Whether the model would answer the next question of a node or refuse it; undefined if that is not known without asking. */
  predictResponse?(tenant: string, nodeId: string): PredictedResponse | undefined;
}

/** Whether a model would answer a question or refuse to. */
export type PredictedResponse = 'valid' | 'refusal';

/** Predicts whether the model of a provider would answer or refuse now; undefined if that is not known without asking. */
export type PredictResponse = (at: {
  readonly provider: string;
  readonly tenant: string;
  readonly nodeId: string;
}) => PredictedResponse | undefined;

/** A question to one model, with every default filled in. */
export interface ProviderQuestion extends Question {
  readonly model: string;
  readonly messages: readonly ModelMessage[];
}

/** The circumstances of a call to a provider. */
export interface ProviderCall {
  readonly signal: AbortSignal;
  /** The idempotency key: the same for every attempt at this call. */
  readonly effectId: string;
  readonly tenant: string;
  readonly nodeId: string;
  /** The headers that make the call part of the run's trace. */
  readonly trace?: TraceHeaders | undefined;
  /** The answer is taken from here as it arrives; too much ends the call. */
  readonly budget?: OutputBudget | undefined;
  onChunk(chunk: ModelChunk, isLast: boolean): void;
  onReasoning?(text: string): void;
}

/** A call was not made because it needs at least `need` of a budget dimension that has less left. */
export class OverBudget extends Error {
  override readonly name = 'OverBudget';
  readonly dimension: 'tokens' | 'cost';
  readonly need: number;

  constructor(dimension: 'tokens' | 'cost', need: number) {
    super(`The call would take more ${dimension} than the run has left.`);
    this.dimension = dimension;
    this.need = need;
  }
}
