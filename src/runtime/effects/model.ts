import type { ChunkMeta } from '../../protocol/events.ts';
import type { JsonObject } from '../../protocol/json.ts';

export interface ModelRequest {
  readonly mockProvider: { readonly id: string; readonly config: JsonObject };
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
