import type { AuditCheckpoint, AuditEntry, HashedEntry } from '../../../protocol/trust/audit-chain.ts';
import { isoTime } from '../../../system/iso-time.ts';
import type { CheckpointRow, EntryRow } from './records.ts';

/**
 * An entry as it is hashed. It contains every column of its row, so that none can be changed unnoticed; the members are in
 * the order of canonical JSON, which is then quick to write.
 */
export function entryOf(row: EntryRow): AuditEntry {
  return {
    action: row.action,
    actor: row.actor,
    atSequence: row.sequence,
    ...(row.details === null ? {} : { details: parseDetails(row.details) }),
    occurredAt: timeText(row.at),
    outcome: row.outcome,
    prevHash: row.prev_hash,
    ...(row.target === null ? {} : { target: row.target }),
    tenant: row.tenant,
    ...(row.workspace === null ? {} : { workspace: row.workspace }),
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
  return Number.isNaN(new Date(at).getTime()) ? String(at) : isoTime(at);
}

/** Text that is not JSON was not written by this program: it is shown unchanged, and the hash will not match. */
function parseDetails(details: string): unknown {
  try {
    return JSON.parse(details);
  } catch {
    return details;
  }
}
