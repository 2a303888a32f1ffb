import type { MemoryEntry } from '../../protocol/ai/memory.ts';

/** An operation on a memory, within the tenant and workspace of the run. */
export type MemoryRequest =
  | MemoryPut
  | MemoryList
  | { readonly op: 'get' | 'forget'; readonly memoryRef: string; readonly memoryId: string }
  | { readonly op: 'consolidate'; readonly memoryRef: string };

/** Stores an entry. */
export interface MemoryPut {
  readonly op: 'put';
  readonly memoryRef: string;
  readonly content: string;
  readonly tags: readonly string[];
  readonly ttlSeconds?: number | undefined;
  readonly agentId?: string | undefined;
  /** Secret values of the run; their names are stored instead. */
  readonly secrets?: readonly { readonly id: string; readonly value: string }[];
}

/** Finds entries. */
export interface MemoryList {
  readonly op: 'list';
  readonly memoryRef: string;
  readonly tag?: string | undefined;
  /** Words; entries with the most of them come first. */
  readonly query?: string | undefined;
  readonly limit: number;
}

/** The entries that were written, found, deleted or merged into others. */
export interface MemoryResult {
  readonly entries: readonly MemoryEntry[];
  /** How many entries are left after a consolidation. */
  readonly left?: number;
}

/** The limits of memory entries. */
export const MEMORY_LIMITS = {
  refCharacters: 256,
  contentBytes: 16_384,
  tags: 16,
  tagCharacters: 64,
  ttlSeconds: 315_360_000,
  page: 100,
} as const;
