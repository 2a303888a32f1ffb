import type { ProviderUsage } from '../../protocol/ai/models.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import type { ChunkMeta } from '../../protocol/running/events.ts';

/** What a node asks of a model. The host knows which provider and model to ask where the node does not say. */
export interface ModelRequest extends Question {
  readonly provider?: string | undefined;
  readonly model?: string | undefined;
  /** Answers as a test wants it, instead of any provider. */
  readonly mockProvider?: { readonly id: string; readonly config: JsonObject };
  /** Is given what the model says while it says it; not called for an answer that is only remembered. */
  readonly hear?: (chunk: ModelChunk, isLast: boolean) => void;
}

interface Question {
  readonly messages?: readonly ModelMessage[];
  readonly maxTokens?: number | undefined;
  readonly temperature?: number | undefined;
  readonly stopSequences?: readonly string[] | undefined;
  /** The answer must be JSON that fits. */
  readonly outputSchema?: JsonObject | undefined;
  readonly tools?: readonly ModelTool[] | undefined;
  readonly toolChoice?: ToolChoice | undefined;
}

export type ModelMessage =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content: string; readonly toolCalls?: readonly ToolCall[] }
  | { readonly role: 'tool'; readonly toolCallId: string; readonly name: string; readonly content: string };

/** A tool that the model may ask for. Calling it is up to whoever asked the model. */
export interface ModelTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: JsonObject;
}

export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string };

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: unknown;
}

/** What a model said, in the pieces in which it said it. The last piece tells how it ended. */
export interface ModelResult {
  readonly chunks: readonly ModelChunk[];
  readonly usage?: ProviderUsage | undefined;
  /** It would not answer; what it said instead. */
  readonly refusal?: { readonly text: string } | undefined;
  /** In the provider's words, why an answer was cut off. */
  readonly stopReason?: 'max_tokens' | 'length' | undefined;
  /** The log has this answer already: it was given before a crash. */
  readonly isTold?: boolean;
}

export interface ModelChunk {
  readonly text: string;
  readonly delayMs: number;
  readonly meta: ChunkMeta;
}

/** Dollars for a million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
}

/** Somebody who has models, however they are reached. */
export interface ModelProvider {
  readonly id: string;
  /** The first is the one to ask when nobody names one. */
  readonly models: readonly string[];
  readonly prices: Readonly<Record<string, Price>>;
  /** Not to be asked by those who do not care whom they ask. */
  readonly isByNameOnly?: boolean;
  answer(question: ProviderQuestion, call: ProviderCall): Promise<ModelResult>;
}

/** A question to one model, with everything decided. */
export interface ProviderQuestion extends Question {
  readonly model: string;
  readonly messages: readonly ModelMessage[];
}

export interface ProviderCall {
  readonly signal: AbortSignal;
  /** The same for every attempt at this call. */
  readonly effectId: string;
  readonly tenant: string;
  readonly nodeId: string;
  hear(chunk: ModelChunk, isLast: boolean): void;
}

/** A call was not made: it would take at least `need` of something of which the run has less left. */
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
