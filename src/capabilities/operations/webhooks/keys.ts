import { randomBytes } from 'node:crypto';
import type { Store } from '../../../store/store.ts';
import { type SealingKey, seal, sealingKey, unseal } from '../../../system/seal.ts';
import { ensureStoredKey, readStoredKey, type WebhookRow } from './records.ts';

const PURPOSE = 'capstan webhooks';
const SECRET_BYTES = 32;

/** What must not lie open in the store: receivers' addresses often carry a credential too. */
export interface Confidential {
  readonly url: string;
  readonly secret: string;
}

/**
 * Seals what webhooks have to keep: under the operator's secret where there is one, else under a key from the store,
 * which is no stronger than the store itself. What a key from the store sealed stays readable once there is a secret.
 */
export class WebhookKeys {
  readonly #store: Store;
  readonly #configured: SealingKey | undefined;
  #stored: Promise<SealingKey> | undefined;

  constructor(store: Store, secret: string | undefined) {
    this.#store = store;
    this.#configured = secret === undefined ? undefined : sealingKey(secret, PURPOSE);
  }

  async seal(confidential: Confidential, webhookId: string): Promise<string> {
    return seal(JSON.stringify(confidential), this.#configured ?? (await this.#fromStore()), webhookId);
  }

  /** Undefined when it was sealed under a secret that the operator no longer gives. */
  async open({ sealed, webhook_id }: WebhookRow): Promise<Confidential | undefined> {
    const configured = this.#configured && unseal(sealed, [this.#configured], webhook_id);
    const text = configured ?? unseal(sealed, [await this.#fromStore()], webhook_id);
    return text === undefined ? undefined : (JSON.parse(text) as Confidential);
  }

  #fromStore(): Promise<SealingKey> {
    this.#stored ??= this.#readOrMake().catch((error) => {
      this.#stored = undefined;
      throw error;
    });
    return this.#stored;
  }

  async #readOrMake(): Promise<SealingKey> {
    const read = () => this.#store.read<{ secret: string }>(readStoredKey());
    const [known] = await read();
    if (known) return sealingKey(known.secret, PURPOSE);
    await this.#store.commit([ensureStoredKey(randomBytes(SECRET_BYTES).toString('base64url'))]);
    const [made] = await read();
    return sealingKey(made!.secret, PURPOSE);
  }
}
