import { StoredSealingKey } from '../../../runtime/stored-sealing-key.ts';
import type { Store } from '../../../store/store.ts';
import { type SealingKey, seal, sealingKey, unseal } from '../../../system/seal.ts';
import { ensureStoredKey, readStoredKey, type WebhookRow } from './records.ts';

const PURPOSE = 'capstan webhooks';

/** Where to deliver, and the signing secret. Both are sealed at rest: URLs often contain a credential too. */
interface WebhookTarget {
  readonly url: string;
  readonly secret: string;
  /** Set for a callback whose receiver may answer interrupts: the origin of the URLs that take the answers. */
  readonly answersAt?: string | undefined;
}

/**
 * Seals targets under the operator's secret, else under a key from the store, which is no stronger than the store
 * itself. What was sealed under the stored key stays readable once the operator sets a secret.
 */
export class WebhookSealer {
  readonly #configured: SealingKey | undefined;
  readonly #stored: StoredSealingKey;

  constructor(store: Store, secret: string | undefined) {
    this.#stored = new StoredSealingKey(store, { read: readStoredKey, ensure: ensureStoredKey }, PURPOSE);
    this.#configured = secret === undefined ? undefined : sealingKey(secret, PURPOSE);
  }

  async seal(target: WebhookTarget, webhookId: string): Promise<string> {
    return seal(JSON.stringify(target), this.#configured ?? (await this.#stored.get()), webhookId);
  }

  /** Undefined if it was sealed under a secret that the operator no longer sets. */
  async unseal({ sealed, webhook_id }: WebhookRow): Promise<WebhookTarget | undefined> {
    const configured = this.#configured && unseal(sealed, [this.#configured], webhook_id);
    const text = configured ?? unseal(sealed, [await this.#stored.get()], webhook_id);
    return text === undefined ? undefined : (JSON.parse(text) as WebhookTarget);
  }
}
