import { entryHash } from '../../../protocol/trust/audit-chain.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { entryOf } from './document.ts';
import type { EntryRow, HeadRow, PendingRow } from './records.ts';

/** Appends pending records to a hash chain: each gets the next sequence and the hash of the entry before it. */
export function chainOn(head: HeadRow | undefined, pending: readonly PendingRow[]): EntryRow[] {
  let sequence = head?.sequence ?? 0;
  let prevHash = head?.hash ?? null;
  return pending.map((record) => {
    const row = { ...record, sequence: ++sequence, prev_hash: prevHash, hash: '' };
    row.hash = entryHash(entryOf(row), sha256Hex);
    prevHash = row.hash;
    return row;
  });
}
