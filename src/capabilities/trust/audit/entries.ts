import {
  type AuditCheckpoint,
  type AuditEntry,
  entryHash,
  type HashedEntry,
} from '../../../protocol/trust/audit-chain.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { CheckpointRow, EntryRow, HeadRow, PendingRow } from './records.ts';

/** Gives each its place behind the end of the chain. */
export function chainOn(head: HeadRow | undefined, pending: readonly PendingRow[]): EntryRow[] {
  let sequence = head?.sequence ?? 0;
  let prevHash = head?.hash ?? null;
  return pending.map((fact) => {
    const row = { ...fact, sequence: ++sequence, prev_hash: prevHash, hash: '' };
    row.hash = entryHash(entryOf(row), sha256Hex);
    prevHash = row.hash;
    return row;
  });
}

/** An entry as it is hashed: every column of its row is in it. */
function entryOf(row: EntryRow): AuditEntry {
  return {
    atSequence: row.sequence,
    occurredAt: timeText(row.at),
    tenant: row.tenant,
    ...(row.workspace === null ? {} : { workspace: row.workspace }),
    actor: row.actor,
    action: row.action,
    ...(row.target === null ? {} : { target: row.target }),
    outcome: row.outcome,
    ...(row.details === null ? {} : { details: parsed(row.details) }),
    prevHash: row.prev_hash,
  };
}

export function hashedEntryOf(row: EntryRow): HashedEntry {
  return { ...entryOf(row), hash: row.hash };
}

export function checkpointOf({ checkpoint_id, at_sequence, merkle_root, signature }: CheckpointRow): AuditCheckpoint {
  return { checkpoint: checkpoint_id, atSequence: at_sequence, merkleRoot: merkle_root, signature };
}

/** What is no time, or no JSON, was not written by us. It is shown as it is, and its hash tells. */
export function timeText(at: number): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? String(at) : time.toISOString();
}

export function parsed(details: string): unknown {
  try {
    return JSON.parse(details);
  } catch {
    return details;
  }
}
