import { ChainVerifier } from '../../../protocol/trust/audit-chain.ts';
import type { Store } from '../../../store/store.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { hashedEntryOf } from './document.ts';
import { type EntryRow, type HeadRow, listHeads, readEntries } from './records.ts';

/** What the chains of a store came to. */
export interface ChainReport {
  readonly entries: number;
  /** Tenants whose chain does not hold, and the first sequence at which it does not. */
  readonly broken: readonly { readonly tenant: string; readonly atSeq: number }[];
}

const PAGE = 500;

/**
 * Recomputes the chain of every tenant from its content. Signatures are left to `capstan audit verify`, which knows whom
 * to trust.
 */
export async function verifyChains(store: Pick<Store, 'read'>): Promise<ChainReport> {
  const broken: { tenant: string; atSeq: number }[] = [];
  let entries = 0;
  for (let after = ''; ; ) {
    const heads = await store.read<HeadRow>(listHeads(after, PAGE));
    for (const { tenant, sequence } of heads) {
      entries += sequence;
      const atSeq = await firstBreak(store, tenant, sequence);
      if (atSeq !== undefined) broken.push({ tenant, atSeq });
    }
    if (heads.length < PAGE) return { entries, broken };
    after = heads.at(-1)!.tenant;
  }
}

async function firstBreak(store: Pick<Store, 'read'>, tenant: string, last: number): Promise<number | undefined> {
  const verifier = new ChainVerifier(
    { fromSeq: 1, toSeq: last, after: 0, last, coveredUpTo: 0, checkpoints: [] },
    { digest: sha256Hex, isSigned: () => true },
  );
  for (let from = 1; from <= last; ) {
    const rows = await store.read<EntryRow>(readEntries(tenant, { from, to: last }, PAGE));
    for (const row of rows) verifier.add(hashedEntryOf(row));
    if (rows.length < PAGE) break;
    from = rows.at(-1)!.sequence + 1;
  }
  return verifier.finish().anomalies[0]?.atSeq;
}
