import type { AnchorRecord } from '../../../protocol/trust/audit-anchors.ts';
import { commitOrThrow } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Anchor } from './anchors.ts';
import type { CheckpointKeys } from './checkpoint-keys.ts';
import { checkpointOf, timeText } from './document.ts';
import { type CheckpointRow, readUnanchored, removeUnanchored } from './records.ts';

const BATCH = 100;

/** Copies checkpoints to the anchors, each at least once, and reads back what was copied. */
export class Anchorer {
  readonly #runtime: Pick<Runtime, 'store' | 'log'>;
  readonly #keys: CheckpointKeys;
  readonly #anchors: readonly Anchor[];

  constructor(runtime: Pick<Runtime, 'store' | 'log'>, keys: CheckpointKeys, anchors: readonly Anchor[]) {
    this.#runtime = runtime;
    this.#keys = keys;
    this.#anchors = anchors;
  }

  get hasAnchors(): boolean {
    return this.#anchors.length > 0;
  }

  /** Copies everything that waits. False if an anchor could not be reached: the rest is to be tried again. */
  async copyAll(): Promise<boolean> {
    if (!this.hasAnchors) return true;
    const { store, log } = this.#runtime;
    try {
      for (;;) {
        const rows = await store.read<CheckpointRow>(readUnanchored(BATCH));
        if (rows.length === 0) return true;
        await this.#copy(rows);
        await commitOrThrow(store, rows.map(removeUnanchored));
      }
    } catch (error) {
      log.error({ err: error }, 'audit checkpoints could not be anchored; trying again');
      return false;
    }
  }

  /** What the anchors that can be read have of a tenant. */
  async read(tenant: string): Promise<readonly AnchorRecord[]> {
    const read = await Promise.all(this.#anchors.map((anchor) => anchor.read?.(tenant) ?? []));
    return read.flat();
  }

  async #copy(rows: readonly CheckpointRow[]): Promise<void> {
    await this.#keys.loadUnknown(rows.map(({ key_id }) => key_id));
    const keys = new Map(this.#keys.all.map(({ keyId, spki }) => [keyId, spki]));
    const records = rows.map(
      (row): AnchorRecord => ({
        tenant: row.tenant,
        ...checkpointOf(row),
        keyId: row.key_id,
        publicKey: keys.get(row.key_id) ?? '',
        signedAt: timeText(row.signed_at),
      }),
    );
    for (const anchor of this.#anchors) await anchor.add(records);
  }
}
