import { isHash, MerkleRoot } from '../../../protocol/trust/audit-chain.ts';
import { type Change, changeOf, perform, unchanged, withResult } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Write } from '../../../store/sql.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { chainOn } from './chain.ts';
import type { CheckpointKeys } from './checkpoint-keys.ts';
import { HOST_STARTED } from './record.ts';
import {
  type CheckpointRow,
  type EntryRow,
  HEAD,
  type HeadRow,
  insertCheckpoint,
  insertEntries,
  insertUnanchored,
  listTails,
  moveHead,
  type PendingRow,
  readHashes,
  readHead,
  readPending,
  removePending,
} from './records.ts';

/** A checkpoint covers at most this many entries. */
export const CHECKPOINT_ENTRIES = 1_000;
/** A checkpoint is signed at most this long after the first entry that it covers. */
export const CHECKPOINT_SECONDS = 300;

/** Pending records that are read at a time: those of a busy second, so that all of a tenant go into its chain together. */
const READ_AT_ONCE = 5_000;
/** Small enough that a store that works on the main thread blocks it for a few milliseconds only. */
const BATCH = 200;
/** Bounds how long a caller waits for a log to be sealed; the work item seals the rest. */
const READS_MAX = 40;
const TAILS_PER_PAGE = 100;
const TAIL_PAGES_MAX = 10_000;
/** On one host, batches wait for each other instead of conflicting. */
const TURN = 'audit-seal';

/**
 * Moves pending records into the hash chains and signs checkpoints. Any number of hosts may do so at the same time:
 * every batch expects the end of the chain to be where it was when the batch was read.
 */
export class Sealer {
  readonly #runtime: Pick<Runtime, 'store' | 'mutex' | 'clock' | 'ids'>;
  readonly #keys: CheckpointKeys;
  readonly #isAnchored: boolean;

  constructor(
    runtime: Pick<Runtime, 'store' | 'mutex' | 'clock' | 'ids'>,
    keys: CheckpointKeys,
    { isAnchored }: { readonly isAnchored: boolean },
  ) {
    this.#runtime = runtime;
    this.#keys = keys;
    this.#isAnchored = isAnchored;
  }

  /** Seals everything that is pending now, for one tenant or for all. */
  async seal(tenant?: string): Promise<void> {
    for (let read = 0; read < READS_MAX; read++) {
      const { hasMore } = await this.#runtime.mutex.runExclusive(TURN, () => this.#sealOldest(tenant));
      if (!hasMore) return;
    }
  }

  /** Signs a checkpoint over the whole chain, however few entries are new. */
  async checkpoint(tenant: string): Promise<void> {
    // A refusal means that other hosts keep moving the chain; the work item signs what is left.
    await perform(this.#runtime, () => this.#checkpointHead(tenant), { mutexKey: TURN });
  }

  /** Signs checkpoints over all chains with entries that have waited for one since before that time. */
  async checkpointTails(before: number): Promise<void> {
    for (let page = 0; page < TAIL_PAGES_MAX; page++) {
      const tails = await this.#runtime.store.read<HeadRow>(listTails(before, TAILS_PER_PAGE));
      for (const { tenant } of tails) await this.checkpoint(tenant);
      if (tails.length < TAILS_PER_PAGE) return;
    }
  }

  async #checkpointHead(tenant: string): Promise<Change> {
    const head = await this.#head(tenant);
    if (!head || head.sequence === head.checkpoint_sequence) return unchanged(undefined);
    return moveChain(head, await this.#signed(head, []));
  }

  async #sealOldest(tenant: string | undefined): Promise<{ readonly hasMore: boolean }> {
    const pending = await this.#pending(tenant);
    const byTenant = [...Map.groupBy(pending, (row) => row.tenant).values()];
    let hasMore = pending.length === READ_AT_ONCE;
    for (const chains of writtenTogether(byTenant)) {
      const rest = await Promise.all(chains.map((rows) => this.#sealInBatches(rows)));
      hasMore ||= rest.includes(true);
    }
    return { hasMore };
  }

  /** True if rows may be left over; those after them are then left for later, too, so that a chain keeps their order. */
  async #sealInBatches(rows: readonly PendingRow[]): Promise<boolean> {
    for (let start = 0; start < rows.length; start += BATCH)
      if (await this.#sealRows(rows[0]!.tenant, rows.slice(start, start + BATCH))) return true;
    return false;
  }

  /** After a conflict the rows are read again: another host may have sealed them. True if rows may be left over. */
  async #sealRows(tenant: string, read: readonly PendingRow[]): Promise<boolean> {
    let rows: readonly PendingRow[] | undefined = read;
    const hasRest = await perform(this.#runtime, async () => {
      const pending = rows ?? (await this.#pending(tenant));
      rows = undefined;
      return pending.length === 0 ? unchanged(false) : this.#append(tenant, pending);
    });
    return hasRest === true;
  }

  /** A batch ends where a checkpoint is due; the result is whether pending rows are left for the next one. */
  async #append(tenant: string, pending: readonly PendingRow[]): Promise<Change<boolean>> {
    const before = await this.#head(tenant);
    const { sequence = 0, checkpoint_sequence: covered = 0, tail_since = null } = before ?? {};
    const rows = pending.slice(0, Math.min(BATCH, Math.max(1, covered + CHECKPOINT_ENTRIES - sequence)));
    const entries = chainOn(before, rows);
    const { sequence: last, hash } = entries.at(-1)!;
    const since = tail_since ?? Math.min(...rows.map(({ at }) => at));
    const head: HeadRow = { tenant, sequence: last, hash, checkpoint_sequence: covered, tail_since: since };
    const isDue =
      covered === 0 || last - covered >= CHECKPOINT_ENTRIES || rows.some(({ action }) => action === HOST_STARTED);
    const pendingIds = rows.map(({ pending_id }) => pending_id);
    const moved = moveChain(before, isDue ? await this.#signed(head, entries) : { head, writes: [] }, [
      ...removePending(tenant, pendingIds),
      ...insertEntries(entries),
    ]);
    return withResult(moved, () => rows.length < pending.length);
  }

  /**
   * The end of a chain with a checkpoint over everything since the last one; `unwritten` are the entries that are not
   * in the store yet. A damaged chain is signed as it is: the checkpoint will not match, and a verification shows that.
   */
  async #signed(head: HeadRow, unwritten: readonly EntryRow[]): Promise<ChainEnd> {
    const { tenant, sequence, checkpoint_sequence } = head;
    const stored = await this.#runtime.store.read<{ hash: string }>(
      readHashes(tenant, { from: checkpoint_sequence + 1, to: sequence - unwritten.length }),
    );
    const leaves = [...stored, ...unwritten].map(({ hash }) => hash);
    const tree = new MerkleRoot(sha256Hex);
    for (const leaf of leaves.length > 0 ? leaves : [head.hash]) tree.add(isHash(leaf) ? leaf : sha256Hex(leaf));
    const merkleRoot = tree.root();
    const { keyId, signature } = await this.#keys.sign(merkleRoot);
    const checkpoint: CheckpointRow = {
      tenant,
      at_sequence: sequence,
      checkpoint_id: this.#runtime.ids.next('cp-'),
      merkle_root: merkleRoot,
      signature,
      key_id: keyId,
      signed_at: this.#runtime.clock.now(),
    };
    const writes = [insertCheckpoint(checkpoint), ...(this.#isAnchored ? [insertUnanchored(checkpoint)] : [])];
    return { head: { ...head, checkpoint_sequence: sequence, tail_since: null }, writes };
  }

  async #head(tenant: string): Promise<HeadRow | undefined> {
    const [head] = await this.#runtime.store.read<HeadRow>(readHead(tenant));
    return head;
  }

  #pending(tenant: string | undefined): Promise<PendingRow[]> {
    return this.#runtime.store.read<PendingRow>(readPending(tenant, READ_AT_ONCE));
  }
}

/** Rows of several tenants, as many tenants at a time as have a batch of rows together. */
function* writtenTogether(byTenant: readonly PendingRow[][]): Generator<PendingRow[][]> {
  let [together, size]: [PendingRow[][], number] = [[], 0];
  for (const rows of byTenant) {
    if (together.length > 0 && size + rows.length > BATCH) {
      yield together;
      [together, size] = [[], 0];
    }
    together.push(rows);
    size += rows.length;
  }
  if (together.length > 0) yield together;
}

/** Where a chain ends after a change, and what is written for that besides. */
interface ChainEnd {
  readonly head: HeadRow;
  readonly writes: readonly Write[];
}

/** Two writers that read the same end conflict here: one goes on, the other reads again. */
function moveChain(before: HeadRow | undefined, { head, writes }: ChainEnd, entries: readonly Write[] = []): Change {
  return changeOf(undefined, [moveHead(before, head), ...entries, ...writes], { retryOn: [HEAD] });
}
