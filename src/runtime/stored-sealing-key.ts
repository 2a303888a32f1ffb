import { randomBytes } from 'node:crypto';
import type { Statement, Write } from '../store/sql.ts';
import type { Store } from '../store/store.ts';
import { type SealingKey, sealingKey } from '../system/seal.ts';
import { commitOrThrow } from './change.ts';

const SECRET_BYTES = 32;

/** Where a secret is kept. `ensure` must leave one that is there as it is, so that all hosts agree on one. */
export interface SecretRow {
  readonly read: () => Statement;
  readonly ensure: (secret: string) => Write;
}

/** A sealing key made from a secret in the store, which is created when it is first needed. */
export class StoredSealingKey {
  readonly #store: Store;
  readonly #row: SecretRow;
  readonly #purpose: string;
  #known: Promise<SealingKey> | undefined;

  constructor(store: Store, row: SecretRow, purpose: string) {
    this.#store = store;
    this.#row = row;
    this.#purpose = purpose;
  }

  /** The key; read once. */
  get(): Promise<SealingKey> {
    this.#known ??= this.#readOrCreate().catch((error) => {
      this.#known = undefined;
      throw error;
    });
    return this.#known;
  }

  async #readOrCreate(): Promise<SealingKey> {
    const read = () => this.#store.read<{ secret: string }>(this.#row.read());
    const [known] = await read();
    if (known) return sealingKey(known.secret, this.#purpose);
    await commitOrThrow(this.#store, [this.#row.ensure(randomBytes(SECRET_BYTES).toString('base64url'))]);
    const [created] = await read();
    return sealingKey(created!.secret, this.#purpose);
  }
}
