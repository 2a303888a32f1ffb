import type { ChunkMeta } from '../../protocol/events.ts';
import type { JsonObject } from '../../protocol/json.ts';

export interface ModelRequest {
  readonly mockProvider: { readonly id: string; readonly config: JsonObject };
  /** What the model is told, where the node has prompts. */
  readonly messages?: readonly ModelMessage[];
}

export interface ModelMessage {
  readonly role: 'system' | 'user';
  readonly content: string;
}

/** What a model said, in the pieces in which it said it. */
export interface ModelResult {
  readonly chunks: readonly ModelChunk[];
}

export interface ModelChunk {
  readonly text: string;
  readonly delayMs: number;
  readonly meta: ChunkMeta;
}
