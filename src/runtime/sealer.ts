import type { Store } from '../store/store.ts';
import { type SealingKey, seal, sealingKey, unseal } from '../system/seal.ts';
import { type SecretRow, StoredSealingKey } from './stored-sealing-key.ts';

/** What a sealer seals with. */
interface SealerOptions {
  /** Where the key is kept that serves if the operator sets no secret. */
  readonly row: SecretRow;
  readonly purpose: string;
  /** The operator's secret. */
  readonly secret: string | undefined;
}

/**
 * Seals values under the operator's secret, else under a key from the store, which is no stronger than the store itself.
 * What was sealed under the stored key stays readable once the operator sets a secret.
 */
export class Sealer<T extends object> {
  readonly #configured: SealingKey | undefined;
  readonly #stored: StoredSealingKey;

  constructor(store: Store, { row, purpose, secret }: SealerOptions) {
    this.#stored = new StoredSealingKey(store, row, purpose);
    this.#configured = secret === undefined ? undefined : sealingKey(secret, purpose);
  }

  /** Seals a value for its owner: it cannot be unsealed for another one. */
  async seal(value: T, owner: string): Promise<string> {
    return seal(JSON.stringify(value), this.#configured ?? (await this.#stored.get()), owner);
  }

  /** Undefined if it was sealed for another owner, or under a secret that the operator no longer sets. */
  async unseal(sealed: string, owner: string): Promise<T | undefined> {
    const configured = this.#configured && unseal(sealed, [this.#configured], owner);
    const text = configured ?? unseal(sealed, [await this.#stored.get()], owner);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }
}
