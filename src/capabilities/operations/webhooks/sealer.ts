import { randomBytes } from 'node:crypto';
import { commitOrThrow } from '../../../runtime/change.ts';
import type { Store } from '../../../store/store.ts';
import { type SealingKey, seal, sealingKey, unseal } from '../../../system/seal.ts';
import { ensureStoredKey, readStoredKey, type WebhookRow } from './records.ts';

const PURPOSE = 'capstan webhooks';
const SECRET_BYTES = 32;

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
  readonly #store: Store;
  readonly #configured: SealingKey | undefined;
  #stored: Promise<SealingKey> | undefined;

  constructor(store: Store, secret: string | undefined) {
    this.#store = store;
    this.#configured = secret === undefined ? undefined : sealingKey(secret, PURPOSE);
  }

  async seal(target: WebhookTarget, webhookId: string): Promise<string> {
    return seal(JSON.stringify(target), this.#configured ?? (await this.#storedKey()), webhookId);
  }

  /** Undefined if it was sealed under a secret that the operator no longer sets. */
  async unseal({ sealed, webhook_id }: WebhookRow): Promise<WebhookTarget | undefined> {
    const configured = this.#configured && unseal(sealed, [this.#configured], webhook_id);
    const text = configured ?? unseal(sealed, [await this.#storedKey()], webhook_id);
    return text === undefined ? undefined : (JSON.parse(text) as WebhookTarget);
  }

  #storedKey(): Promise<SealingKey> {
    this.#stored ??= this.#readOrCreate().catch((error) => {
      this.#stored = undefined;
      throw error;
    });
    return this.#stored;
  }

  async #readOrCreate(): Promise<SealingKey> {
    const read = () => this.#store.read<{ secret: string }>(readStoredKey());
    const [known] = await read();
    if (known) return sealingKey(known.secret, PURPOSE);
    await commitOrThrow(this.#store, [ensureStoredKey(randomBytes(SECRET_BYTES).toString('base64url'))]);
    const [created] = await read();
    return sealingKey(created!.secret, PURPOSE);
  }
}
