import type { AuditCheckpoint, AuditEntry, HashedEntry } from '../../../protocol/trust/audit-chain.ts';
import type { CheckpointRow, EntryRow } from './records.ts';

/** An entry as it is hashed. It contains every column of its row, so that none can be changed unnoticed. */
export function entryOf(row: EntryRow): AuditEntry {
  return {
    atSequence: row.sequence,
    occurredAt: timeText(row.at),
    tenant: row.tenant,
    ...(row.workspace === null ? {} : { workspace: row.workspace }),
    actor: row.actor,
    action: row.action,
    ...(row.target === null ? {} : { target: row.target }),
    outcome: row.outcome,
    ...(row.details === null ? {} : { details: parseDetails(row.details) }),
    prevHash: row.prev_hash,
  };
}

/** An entry together with its hash, as exports have it. */
export function hashedEntryOf(row: EntryRow): HashedEntry {
  return { ...entryOf(row), hash: row.hash };
}

/** An entry as the list of entries shows it. */
export function itemOf(row: EntryRow): object {
  const { sequence, at, actor, action, target, outcome, details, hash, prev_hash } = row;
  return {
    sequence,
    at: timeText(at),
    actor,
    action,
    ...(target === null ? {} : { target }),
    outcome,
    ...(details === null ? {} : { details: parseDetails(details) }),
    hash,
    prevHash: prev_hash,
  };
}

/** A checkpoint as a verification reads it. */
export function checkpointOf({ checkpoint_id, at_sequence, merkle_root, signature }: CheckpointRow): AuditCheckpoint {
  return { checkpoint: checkpoint_id, atSequence: at_sequence, merkleRoot: merkle_root, signature };
}

/** A value that is not a time was not written by this program: it is shown unchanged, and the hash will not match. */
export function timeText(at: number): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? String(at) : time.toISOString();
}

/** Text that is not JSON was not written by this program: it is shown unchanged, and the hash will not match. */
function parseDetails(details: string): unknown {
  try {
    return JSON.parse(details);
  } catch {
    return details;
  }
}
