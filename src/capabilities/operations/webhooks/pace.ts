import { LruCache } from '../../../runtime/lru-cache.ts';

/** Lanes to one webhook that may be in hand at once, by how its last attempt went. */
const AT_ONCE = { untried: 16, delivered: Number.POSITIVE_INFINITY, failed: 4 };
const REMEMBERED_MAX = 10_000;

type Last = keyof typeof AT_ONCE;

/**
 * Who gets a place among those who are being delivered to. A receiver that has not answered well yet, or no longer
 * does, gets few, so that one which is down, or slow to say no, does not keep the others waiting.
 */
export class Pace {
  readonly #inHand = new Map<string, number>();
  readonly #last = new LruCache<string, Last>(REMEMBERED_MAX);

  /** False when this receiver has places enough; then `leave` must not be called. */
  enter(webhookId: string): boolean {
    const inHand = this.#inHand.get(webhookId) ?? 0;
    if (inHand >= AT_ONCE[this.#last.get(webhookId) ?? 'untried']) return false;
    this.#inHand.set(webhookId, inHand + 1);
    return true;
  }

  note(webhookId: string, isDelivered: boolean): void {
    this.#last.set(webhookId, isDelivered ? 'delivered' : 'failed');
  }

  leave(webhookId: string): void {
    const inHand = this.#inHand.get(webhookId)! - 1;
    if (inHand > 0) this.#inHand.set(webhookId, inHand);
    else this.#inHand.delete(webhookId);
  }
}
