import type { MemoryEntry } from '../../protocol/ai/memory.ts';

/** What may be done with the memory of an agent. Everything stays in the tenant and workspace of the run. */
export type MemoryRequest =
  | MemoryPut
  | MemoryList
  | { readonly op: 'get' | 'forget'; readonly memoryRef: string; readonly memoryId: string }
  | { readonly op: 'consolidate'; readonly memoryRef: string };

export interface MemoryPut {
  readonly op: 'put';
  readonly memoryRef: string;
  readonly content: string;
  readonly tags: readonly string[];
  readonly ttlSeconds?: number | undefined;
  readonly agentId?: string | undefined;
  /** Values that the run was entrusted with. They are kept as their names. */
  readonly secrets?: readonly { readonly id: string; readonly value: string }[];
}

export interface MemoryList {
  readonly op: 'list';
  readonly memoryRef: string;
  readonly tag?: string | undefined;
  /** Words; what has most of them comes first. */
  readonly query?: string | undefined;
  readonly limit: number;
}

/** The entries that it was about: written, found, forgotten, or taken away because others say the same. */
export interface MemoryResult {
  readonly entries: readonly MemoryEntry[];
  /** How many there are after a consolidation. */
  readonly left?: number;
}

export const MEMORY_LIMITS = {
  refCharacters: 256,
  contentBytes: 16_384,
  tags: 16,
  tagCharacters: 64,
  ttlSeconds: 315_360_000,
  page: 100,
} as const;
