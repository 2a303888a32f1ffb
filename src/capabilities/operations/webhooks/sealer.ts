import { Sealer } from '../../../runtime/sealer.ts';
import type { Store } from '../../../store/store.ts';
import { ensureStoredKey, readStoredKey, type WebhookRow } from './records.ts';

const PURPOSE = 'capstan webhooks';

/** Where to deliver, and the signing secret. Both are sealed at rest: URLs often contain a credential too. */
interface WebhookTarget {
  readonly url: string;
  readonly secret: string;
  /** Set for a callback whose receiver may answer interrupts: the origin of the URLs that take the answers. */
  readonly answersAt?: string | undefined;
}

/** Seals the targets of webhooks. */
export class WebhookSealer {
  readonly #sealer: Sealer<WebhookTarget>;

  constructor(store: Store, secret: string | undefined) {
    const row = { read: readStoredKey, ensure: ensureStoredKey };
    this.#sealer = new Sealer(store, { row, purpose: PURPOSE, secret });
  }

  seal(target: WebhookTarget, webhookId: string): Promise<string> {
    return this.#sealer.seal(target, webhookId);
  }

  /** Undefined if it was sealed under a secret that the operator no longer sets. */
  unseal({ sealed, webhook_id }: WebhookRow): Promise<WebhookTarget | undefined> {
    return this.#sealer.unseal(sealed, webhook_id);
  }
}
