import type { MemoryEntry, MemoryRecord } from '../../../protocol/ai/memory.ts';
import type { MemoryRow } from './records.ts';

/** An entry as agents get it. */
export function entryOf({ memory_id, content, tags, created_at, expires_at }: MemoryRow): MemoryEntry {
  return {
    id: memory_id,
    content,
    tags: JSON.parse(tags) as string[],
    createdAt: new Date(created_at).toISOString(),
    ...(expires_at === null ? {} : { expiresAt: new Date(expires_at).toISOString() }),
  };
}

/** An entry as people see it: with where it came from. */
export function recordOf(row: MemoryRow): MemoryRecord {
  return {
    ...entryOf(row),
    memoryRef: row.memory_ref,
    ...(row.workspace === '' ? {} : { workspace: row.workspace }),
    runId: row.run_id,
    nodeId: row.node_id,
    ...(row.agent_id === null ? {} : { agentId: row.agent_id }),
  };
}
