import type { MemoryRecord } from '../../../protocol/ai/memory.ts';
import type { Refusal } from '../../../protocol/errors.ts';
import type { Change } from '../../../runtime/change.ts';
import type { MemoryRequest, MemoryResult } from '../../../runtime/effects/memory.ts';
import { door } from '../../capability.ts';
import type { Caller } from '../../request.ts';

/** What agents remember. It belongs to a tenant and a workspace, and outlives the runs that wrote it. */
export interface Memory {
  /** Performs a request of a node or tool; invalid ones are thrown as NodeFailure. */
  perform(user: MemoryUser, request: MemoryRequest): Promise<MemoryResult>;
  /** The entries that the caller may see, newest first. */
  list(caller: Caller, filter: MemoryFilter, limit: number): Promise<MemoryRecord[]>;
  find(caller: Caller, memoryId: string): Promise<MemoryRecord | Refusal>;
  /** Deletes one entry. */
  remove(caller: Caller, memoryId: string): Promise<Change | Refusal>;
  /** Deletes every entry under a reference. */
  removeAll(caller: Caller, memoryRef: string): Promise<Change>;
}

/** The door to memory. */
export const Memory = door<Memory>()('memory');

/** On whose behalf memory is used. */
export interface MemoryUser {
  readonly tenant: string;
  readonly workspace?: string | undefined;
  readonly runId: string;
  readonly nodeId: string;
  /** The idempotency key: an entry that an earlier attempt wrote is not written again. */
  readonly effectId: string;
}

/** Which entries to list. */
export interface MemoryFilter {
  readonly memoryRef: string | undefined;
  readonly tag: string | undefined;
  /** The id of the last entry of the page before. */
  readonly before: string | undefined;
}
