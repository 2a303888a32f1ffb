import {
  type AnchoredCheckpoint,
  type AuditCheckpoint,
  ChainVerifier,
  type VerifyResult,
} from '../../../protocol/trust/audit-chain.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Statement } from '../../../store/sql.ts';
import { turnOf } from '../../../system/breaks.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { CheckpointKeys } from './checkpoint-keys.ts';
import { checkpointOf, hashedEntryOf } from './document.ts';
import {
  type CheckpointRow,
  checkpointsAround,
  type EntryRow,
  readCheckpoints,
  readEntries,
  type SequenceRange,
} from './records.ts';

const PAGE = 500;

/** What is known of a log besides its rows. */
interface KnownLog {
  /** The last sequence that it is known to have had. */
  readonly end: number;
  readonly anchored: readonly AnchoredCheckpoint[];
}

/** Reads and verifies logs of any length in pages, and yields to other requests between pages. */
export class AuditReader {
  readonly #runtime: Pick<Runtime, 'store' | 'clock'>;
  readonly #keys: CheckpointKeys;

  constructor(runtime: Pick<Runtime, 'store' | 'clock'>, keys: CheckpointKeys) {
    this.#runtime = runtime;
    this.#keys = keys;
  }

  /** Pages of entries, in the order of the chain. */
  entries(tenant: string, range: SequenceRange): AsyncGenerator<EntryRow[]> {
    return this.#pages<EntryRow>(range, (rest) => readEntries(tenant, rest, PAGE), 'sequence');
  }

  async checkpoints(tenant: string, range: SequenceRange): Promise<CheckpointRow[]> {
    const rows: CheckpointRow[] = [];
    const pages = this.#pages<CheckpointRow>(range, (rest) => readCheckpoints(tenant, rest, PAGE), 'at_sequence');
    for await (const page of pages) rows.push(...page);
    return rows;
  }

  /** The sequences of the checkpoint before an entry and of the one that covers it; 0 and undefined if there is none. */
  async around(tenant: string, sequence: number): Promise<{ before: number; after: number | undefined }> {
    const [row] = await this.#runtime.store.read<{ before: number | null; after: number | null }>(
      checkpointsAround(tenant, sequence),
    );
    return { before: row?.before ?? 0, after: row?.after ?? undefined };
  }

  /** Recomputes a part of a chain from its content. */
  async verify(tenant: string, { from, to }: SequenceRange, { end, anchored }: KnownLog): Promise<VerifyResult> {
    const first = Math.max(1, from);
    const rows = await this.checkpoints(tenant, { from: first, to });
    await this.#keys.loadUnknown(rows.map(({ key_id }) => key_id));
    const { before: coveredUpTo } = await this.around(tenant, first);
    const keyIds = new Map(rows.map((row) => [checkpointOf(row), row.key_id]));
    const checkpoints = [...keyIds.keys()];
    // The entry before the first one is needed for the hash that the first one refers to.
    const start = Math.max(1, (checkpoints.length > 0 ? coveredUpTo + 1 : first) - 1);
    const last = Math.min(to, Math.max(end, checkpoints.at(-1)?.atSequence ?? 0));
    const isSigned = (checkpoint: AuditCheckpoint) => this.#keys.isSigned(checkpoint, keyIds.get(checkpoint)!);
    const verifier = new ChainVerifier(
      { fromSeq: from, toSeq: to, after: start - 1, last, coveredUpTo, checkpoints, anchored },
      { digest: sha256Hex, isSigned },
    );
    for await (const page of this.entries(tenant, { from: start, to: last })) {
      for (const row of page) verifier.add(hashedEntryOf(row));
    }
    return verifier.finish();
  }

  async *#pages<R extends object>(
    { from, to }: SequenceRange,
    statement: (rest: SequenceRange) => Statement,
    place: keyof R & string,
  ): AsyncGenerator<R[]> {
    for (let next = from; next <= to; ) {
      const rows = await this.#runtime.store.read<R>(statement({ from: next, to }));
      yield rows;
      if (rows.length < PAGE) return;
      next = Number(rows.at(-1)![place]) + 1;
      await turnOf(this.#runtime.clock);
    }
  }
}
