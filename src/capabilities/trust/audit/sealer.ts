import { isHash, MerkleRoot } from '../../../protocol/trust/audit-chain.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Write } from '../../../store/sql.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { chainOn } from './entries.ts';
import type { AuditKeys } from './keys.ts';
import { HOST_STARTED } from './record.ts';
import {
  type EntryRow,
  type HeadRow,
  insertCheckpoint,
  insertEntries,
  listTails,
  moveHead,
  type PendingRow,
  readHashes,
  readHead,
  readPending,
  removePending,
} from './records.ts';

/** A checkpoint covers no more entries than this, and comes no later than this after the first of them. */
export const CHECKPOINT_ENTRIES = 1_000;
export const CHECKPOINT_SECONDS = 300;

/** Small enough that nobody notices the wait when a store works in the foreground. */
const BATCH = 200;
/** Who waits for a log to be sealed waits for so many batches at most; the rest follows by itself. */
const BATCHES_MAX = 1_000;
const TAILS_AT_ONCE = 100;
const TRIES_MAX = 5;

/**
 * Moves what has happened into the chains, and signs checkpoints. Any number of hosts may do so at the same time: all
 * that a batch writes hangs on the end of the chain being where it was when the batch was read.
 */
export class Sealer {
  readonly #runtime: Runtime;
  readonly #keys: AuditKeys;
  #lastTurn: Promise<unknown> = Promise.resolve();

  constructor(runtime: Runtime, keys: AuditKeys) {
    this.#runtime = runtime;
    this.#keys = keys;
  }

  /** Everything that is pending by now, of one tenant or of all. What comes meanwhile is sealed with more of its kind. */
  async seal(tenant?: string): Promise<void> {
    for (let batch = 0; batch < BATCHES_MAX; batch++) {
      if (!(await this.#inTurn(() => this.#sealBatch(tenant)))) return;
    }
  }

  /** Covers everything that is in a chain now, however little that is. */
  async checkpoint(tenant: string): Promise<void> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      if (await this.#inTurn(() => this.#coverEnd(tenant))) return;
    }
  }

  /** Covers the ends that have waited since before that time. */
  async checkpointTails(before: number): Promise<void> {
    for (;;) {
      const tails = await this.#runtime.store.read<HeadRow>(listTails(before, TAILS_AT_ONCE));
      for (const { tenant } of tails) await this.checkpoint(tenant);
      if (tails.length < TAILS_AT_ONCE) return;
    }
  }

  /** In one process, batches come one after the other: they would only stand in each other's way. */
  #inTurn<T>(action: () => Promise<T>): Promise<T> {
    const turn = this.#lastTurn.then(action);
    this.#lastTurn = turn.catch(() => {});
    return turn;
  }

  /** Whether the end is covered; not when somebody else has just moved it. */
  async #coverEnd(tenant: string): Promise<boolean> {
    const head = await this.#head(tenant);
    if (!head || head.sequence === head.checkpoint_sequence) return true;
    return this.#commit(head, await this.#cover(head, []), []);
  }

  /** Whether there may be more to seal. */
  async #sealBatch(tenant: string | undefined): Promise<boolean> {
    const pending = await this.#runtime.store.read<PendingRow>(readPending(tenant, BATCH));
    const byTenant = [...Map.groupBy(pending, (row) => row.tenant)];
    await Promise.all(byTenant.map(([owner, rows]) => this.#append(owner, rows)));
    return pending.length === BATCH;
  }

  /** A batch ends where a checkpoint is due; what is left comes with the next one. */
  async #append(tenant: string, pending: readonly PendingRow[]): Promise<void> {
    const before = await this.#head(tenant);
    const { sequence = 0, checkpoint_sequence: covered = 0, tail_since = null } = before ?? {};
    const rows = pending.slice(0, Math.max(1, covered + CHECKPOINT_ENTRIES - sequence));
    const entries = chainOn(before, rows);
    const { sequence: last, hash } = entries.at(-1)!;
    const since = tail_since ?? Math.min(...rows.map(({ at }) => at));
    const head: HeadRow = { tenant, sequence: last, hash, checkpoint_sequence: covered, tail_since: since };
    const isDue =
      covered === 0 || last - covered >= CHECKPOINT_ENTRIES || rows.some(({ action }) => action === HOST_STARTED);
    const pendingIds = rows.map(({ pending_id }) => pending_id);
    await this.#commit(before, isDue ? await this.#cover(head, entries) : { head, writes: [] }, [
      ...removePending(tenant, pendingIds),
      ...insertEntries(entries),
    ]);
  }

  /**
   * A checkpoint over everything since the last one, of which some may not be in the store yet. An end that somebody has
   * damaged is summed up as it is: the checkpoint will not match, and that is what a verification shows.
   */
  async #cover(head: HeadRow, unwritten: readonly EntryRow[]): Promise<Moved> {
    const { tenant, sequence, checkpoint_sequence } = head;
    const stored = await this.#runtime.store.read<{ hash: string }>(
      readHashes(tenant, { from: checkpoint_sequence + 1, to: sequence - unwritten.length }),
    );
    const leaves = [...stored, ...unwritten].map(({ hash }) => hash);
    const tree = new MerkleRoot(sha256Hex);
    for (const leaf of leaves.length > 0 ? leaves : [head.hash]) tree.add(isHash(leaf) ? leaf : sha256Hex(leaf));
    const merkleRoot = tree.root();
    const { keyId, signature } = this.#keys.sign(merkleRoot);
    const checkpoint = insertCheckpoint({
      tenant,
      at_sequence: sequence,
      checkpoint_id: this.#runtime.ids.next('cp-'),
      merkle_root: merkleRoot,
      signature,
      key_id: keyId,
      signed_at: this.#runtime.clock.now(),
    });
    return { head: { ...head, checkpoint_sequence: sequence, tail_since: null }, writes: [checkpoint] };
  }

  /** Somebody else may have been quicker: then the chain has moved on without us, and what is left is read again. */
  async #commit(before: HeadRow | undefined, { head, writes }: Moved, more: readonly Write[]): Promise<boolean> {
    const outcome = await this.#runtime.store.commit([moveHead(before, head), ...more, ...writes]);
    return outcome.committed;
  }

  async #head(tenant: string): Promise<HeadRow | undefined> {
    const [head] = await this.#runtime.store.read<HeadRow>(readHead(tenant));
    return head;
  }
}

/** Where a chain ends then, and what else has to be written for that. */
interface Moved {
  readonly head: HeadRow;
  readonly writes: readonly Write[];
}
